// bitwise_or: z = a | b, bit by bit, broadcast as numpy does.
//   a, b  [...]  integers, the same type
//   z     the broadcast shape
// Source: ONNX BitwiseOr, opset 18.
#include "ops/element.h"

namespace pinnace {
namespace {
Result<TensorType> bitwise_or_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  return binary_type(node);
}

Status bitwise_or_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return visit_int(out[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_broadcast<T, T>(node.threads(), in[0], in[1], out[0], [](T a, T b) { return a | b; });
    return Status();
  });
}
}  // namespace

PINNACE_OP(bitwise_or){
    .name = "bitwise_or",
    .inputs = {{"a", kInts, 'T'}, {"b", kInts, 'T'}},
    .type = bitwise_or_type,
    .reference = bitwise_or_reference,
    .in_place = 0b11,
    .traits = Trait::kElementwise,
};
}  // namespace pinnace
