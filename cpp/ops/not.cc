// not: y = true where x is false.
//   x  [...]  bool
//   y  [...]  bool
// Source: ONNX Not, opset 1.
#include "ops/element.h"

namespace pinnace {
namespace {
Status not_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  map_elements<uint8_t, uint8_t>(node.threads(), in[0], out[0], [](uint8_t v) { return v == 0; });
  return {};
}
}  // namespace

PINNACE_OP(not){
    .name = "not",
    .inputs = {{"x", kBool}},
    .type = same_type,
    .reference = not_reference,
    .in_place = 1,
    .traits = Trait::kElementwise,
};
}  // namespace pinnace
