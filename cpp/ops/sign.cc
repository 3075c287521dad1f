// sign: y = 1 where x > 0, -1 where x < 0, 0 where x is 0.
//   x  [...]  numbers, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN; -0 becomes 0. Quantised: by table, see quantized_map.h. Source: ONNX Sign, opset 13.
#include "ops/unary.h"

namespace pinnace {
namespace {
Status sign_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  const auto sign = [](auto v) {
    using V = decltype(v);
    const V below = std::is_signed_v<V> ? static_cast<V>(-1) : V{};  // unsigned values are never below 0
    return v > V{} ? V{1} : v < V{} ? below : v == V{} ? V{} : v;
  };
  if (x.type->quantized()) return map_function(node.threads(), x, y, [&](double v) { return sign(v); });
  return visit(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_elements<T, T>(node.threads(), x, y, sign);
    return Status();
  });
}
}  // namespace

PINNACE_OP(sign){
    .name = "sign",
    .inputs = {{"x", kNumbers}},
    .type = same_type,
    .reference = sign_reference,
    .in_place = 1,
    .traits = Trait::kElementwise,
    .unary = UnaryKind::kSign,
};
}  // namespace pinnace
