// or: z = true where either is true, broadcast as numpy does.
//   a, b  [...]  bool
//   z     the broadcast shape, bool
// Source: ONNX Or, opset 7.
#include "ops/element.h"

namespace pinnace {
namespace {
Status or_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  // As bytes, which are 0 or 1.
  map_broadcast<uint8_t, uint8_t>(node.threads(), in[0], in[1], out[0], [](uint8_t a, uint8_t b) { return a | b; });
  return {};
}
}  // namespace

PINNACE_OP(or){
    .name = "or",
    .inputs = {{"a", kBool}, {"b", kBool}},
    .type = binary_type,
    .reference = or_reference,
    .in_place = 0b11,
    .traits = Trait::kElementwise,
};
}  // namespace pinnace
