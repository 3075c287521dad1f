// Everything from a graph on: passes, a program, its plan, and runs on the CPU with inputs that suit its types. The
// graph comes as text, whose mutations keep more of it than those of any file format.
#include "fuzz/fuzzing.h"
#include "fuzz/text_mutator.h"

namespace pinnace {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto model = Model::parse({reinterpret_cast<const char*>(data), size});
  if (!model.ok()) {
    fuzz::require_refusal(model.status());
    return 0;
  }
  fuzz::build_and_run(*model);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return fuzz::mutate_text(data, size, max_size, seed);
}
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size,
                                            uint8_t* out, size_t max_size, unsigned seed) {
  return fuzz::cross_texts(a, a_size, b, b_size, out, max_size, seed);
}

}  // namespace pinnace
