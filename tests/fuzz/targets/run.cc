// Everything from a graph on: passes, a program, its plan, and runs on the CPU with inputs that suit its types. The
// graph comes as text, whose mutations keep more of it than those of any file format.
#include "fuzz/text_target.h"

namespace pinnace {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto model = Model::parse({reinterpret_cast<const char*>(data), size});
  fuzz::judge(model);
  return 0;
}

}  // namespace pinnace
