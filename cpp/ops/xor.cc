// xor: z = true where exactly one is true, broadcast as numpy does.
//   a, b  [...]  bool
//   z     the broadcast shape, bool
// Source: ONNX Xor, opset 7.
#include "ops/element.h"

namespace pinnace {
namespace {
Status xor_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  // As bytes, which are 0 or 1.
  map_broadcast<uint8_t, uint8_t>(node.threads(), in[0], in[1], out[0], [](uint8_t a, uint8_t b) { return a ^ b; });
  return {};
}
}  // namespace

PINNACE_OP(xor){
    .name = "xor",
    .inputs = {{"a", kBool}, {"b", kBool}},
    .type = binary_type,
    .reference = xor_reference,
    .in_place = 0b11,
    .traits = Trait::kElementwise,
};
}  // namespace pinnace
