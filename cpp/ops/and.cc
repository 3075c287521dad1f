// and: z = true where both are true, broadcast as numpy does.
//   a, b  [...]  bool
//   z     the broadcast shape, bool
// Source: ONNX And, opset 7.
#include "ops/element.h"

namespace pinnace {
namespace {
Status and_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  // As bytes, which are 0 or 1.
  map_broadcast<uint8_t, uint8_t>(node.threads(), in[0], in[1], out[0], [](uint8_t a, uint8_t b) { return a & b; });
  return {};
}
}  // namespace

PINNACE_OP(and){
    .name = "and",
    .inputs = {{"a", kBool}, {"b", kBool}},
    .type = binary_type,
    .reference = and_reference,
    .in_place = 0b11,
    .traits = Trait::kElementwise,
};
}  // namespace pinnace
