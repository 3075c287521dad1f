// NNAPI models in JSON: read, checked against the signatures, mapped to a graph; some are run.
#include "fuzz/text_target.h"

namespace pinnace {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::InputFile file("model.json");
  if (!fuzz::is_taken_for("nnapi", {data, size})) return 0;
  file.write({data, size});
  const auto model = Model::load(file.path());
  fuzz::judge(model, {data, size});
  return 0;
}

}  // namespace pinnace
