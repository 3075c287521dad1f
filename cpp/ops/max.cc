// max: y = the largest of all inputs, broadcast as numpy does.
//   x...  one or more [...]  numbers, the same type; or quantised i8 | u8
//   y     the broadcast shape; quantised: declared scale and zero point
// NaN in any input gives NaN; of equal values (0 and -0) the first. Quantised: the dequantised float32 values are
// compared, the result is quantised. Source: ONNX Max, opset 13.
#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status max_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  if (out[0].type->quantized()) {
    fold_quantized(node.threads(), in, out[0], [](float a, float b) { return larger(a, b); });
    return {};
  }
  return visit(out[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    fold_broadcast<T>(
        node.threads(), in, out[0], [](Wide<T> a, Wide<T> b) { return larger(a, b); }, [](Wide<T> v) { return v; });
    return Status();
  });
}
}  // namespace

PINNACE_OP(max){
    .name = "max",
    .inputs = {{"x", kNumbers, 'T', Arity::kVariadic}},
    .type = variadic_type,
    .reference = max_reference,
    .in_place = 0b11,
    .traits = Trait::kElementwise | Trait::kCompares | Trait::kKeepsOnlyInput,
};
}  // namespace pinnace
