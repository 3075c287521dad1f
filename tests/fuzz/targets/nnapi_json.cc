// NNAPI models in JSON: read, checked against the signatures, lowered to a graph; some are run.
#include "fuzz/fuzzing.h"
#include "fuzz/text_mutator.h"

namespace pinnace {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::InputFile file("model.json");
  if (size == 0 || data[0] != '{') return 0;  // told apart from ONNX models by this
  file.write({data, size});
  const auto model = Model::load(file.path());
  if (!model.ok()) {
    fuzz::require_refusal(model.status());
    return 0;
  }
  if (fuzz::chosen_to_run({data, size})) fuzz::build_and_run(*model);
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
