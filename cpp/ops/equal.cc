// equal: z = a == b, broadcast as numpy does.
//   a, b  [...]  any type, the same; or both quantised i8 | u8
//   z     the broadcast shape, bool
// NaN equals nothing; -0 equals 0. Quantised: the dequantised float32 values are compared. Source: ONNX Equal,
// opset 19.
#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status equal_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  if (in[0].type->quantized()) {
    compare_quantized(node.threads(), in[0], in[1], out[0], [](float a, float b) { return a == b; });
    return {};
  }
  return visit(in[0].dtype(), [&](auto zero) {
    map_broadcast<decltype(zero), bool>(node.threads(), in[0], in[1], out[0], [](auto a, auto b) { return a == b; });
    return Status();
  });
}
}  // namespace

PINNACE_OP(equal){
    .name = "equal",
    .inputs = {{"a", kAny, 'T'}, {"b", kAny, 'T'}},
    .type = compare_type,
    .reference = equal_reference,
    .traits = Trait::kElementwise | Trait::kCompares,
};
}  // namespace pinnace
