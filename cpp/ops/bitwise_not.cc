// bitwise_not: every bit of x inverted.
//   x  [...]  integers
//   y  as x
// Source: ONNX BitwiseNot, opset 18.
#include "ops/element.h"

namespace pinnace {
namespace {
Result<TensorType> bitwise_not_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  return same_type(node);
}

Status bitwise_not_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return visit_int(in[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_elements<T, T>(node.threads(), in[0], out[0], [](T v) { return static_cast<T>(~v); });
    return Status();
  });
}
}  // namespace

PINNACE_OP(bitwise_not){
    .name = "bitwise_not",
    .inputs = {{"x", kInts}},
    .type = bitwise_not_type,
    .reference = bitwise_not_reference,
    .in_place = 1,
    .traits = Trait::kElementwise,
};
}  // namespace pinnace
