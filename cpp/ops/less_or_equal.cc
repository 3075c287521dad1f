// less_or_equal: z = a <= b, broadcast as numpy does.
//   a, b  [...]  numbers, the same type; or both quantised i8 | u8
//   z     the broadcast shape, bool
// False where either is NaN. Quantised: the dequantised float32 values are compared. Source: ONNX LessOrEqual,
// opset 16.
#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status less_or_equal_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  if (in[0].type->quantized()) {
    compare_quantized(node.threads(), in[0], in[1], out[0], [](float a, float b) { return a <= b; });
    return {};
  }
  return visit(in[0].dtype(), [&](auto zero) {
    map_broadcast<decltype(zero), bool>(node.threads(), in[0], in[1], out[0], [](auto a, auto b) { return a <= b; });
    return Status();
  });
}
}  // namespace

PINNACE_OP(less_or_equal){
    .name = "less_or_equal",
    .inputs = {{"a", kNumbers, 'T'}, {"b", kNumbers, 'T'}},
    .type = compare_type,
    .reference = less_or_equal_reference,
    .traits = Trait::kElementwise | Trait::kCompares,
};
}  // namespace pinnace
