// Models that PyTorch's NNAPI converter serialised. An input is a word with the length of the serialised model in its
// lower 24 bits, that model, and one buffer of weights; the upper 8 bits choose memory formats of inputs and outputs.
// Inputs have the model's own shapes, with 2 for dynamic sizes.
#include <cstring>

#include "fuzz/fuzzing.h"
#include "import/nnapi/torch_model.h"

namespace pinnace {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint32_t head = 0;
  if (size < sizeof head) return 0;
  std::memcpy(&head, data, sizeof head);
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(sizeof head);
  const size_t length = std::min<size_t>(head & 0xffffff, bytes.size());
  TorchNnapiModel source;
  source.serialized = bytes.first(length);
  source.weights = {bytes.subspan(length)};
  const auto parsed = nnapi::parse_torch_model(source.serialized, source.weights);
  if (!parsed.ok()) {
    fuzz::require_refusal(parsed.status());
    return 0;
  }
  for (const uint32_t input : parsed->inputs) {
    std::vector<uint32_t> dims = parsed->operands[input].dims;
    for (uint32_t& d : dims) d = d == 0 ? 2 : d;
    source.input_formats.push_back(head >> 24 & 1 && dims.size() == 4 ? 1 : 0);
    if (source.input_formats.back() == 1) dims = {dims[0], dims[3], dims[1], dims[2]};
    source.input_dims.push_back(std::move(dims));
  }
  source.output_formats.assign(parsed->outputs.size(), static_cast<int>(head >> 25 & 1));
  const auto model = Model::load_torch_nnapi(source);
  fuzz::judge(model, {data, size});
  return 0;
}

}  // namespace pinnace
