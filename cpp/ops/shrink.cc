// shrink: y = x + bias where x < -lambd, x - bias where x > lambd, else 0.
//   x      [...]  numbers, or quantised i8 | u8
//   bias   float, default 0
//   lambd  float, default 0.5
//   y      as x; quantised: declared scale and zero point
// NaN gives 0, as the definition says. Integers are computed in double and truncated. Quantised: by table, see
// quantized_map.h. Source: ONNX Shrink, opset 9.
#include "ops/unary.h"

namespace pinnace {
namespace {
Status shrink_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const double bias = node.attr_float("bias"), lambd = node.attr_float("lambd");
  const auto shrink = [=](double v) { return UnaryRow<UnaryKind::kShrink>::formula(v, bias, lambd); };
  if (in[0].type->quantized()) return map_function(node.threads(), in[0], out[0], shrink);
  return visit(in[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_elements<T, T>(node.threads(), in[0], out[0],
                       [&](Wide<T> v) { return convert<Wide<T>>(shrink(static_cast<double>(v))); });
    return Status();
  });
}
}  // namespace

PINNACE_OP(shrink){
    .name = "shrink",
    .inputs = {{"x", kNumbers}},
    .attrs = UnaryRow<UnaryKind::kShrink>::parameters,
    .type = same_type,
    .reference = shrink_reference,
    .in_place = 1,
    .traits = Trait::kElementwise,
    .unary = UnaryKind::kShrink,
};
}  // namespace pinnace
