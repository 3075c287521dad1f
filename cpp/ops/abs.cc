// abs: y = |x|.
//   x  [...]  numbers, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN; -0 becomes 0; the smallest signed integer stays itself. Quantised: by table, see quantized_map.h.
// Source: ONNX Abs, opset 13.
#include "ops/unary.h"

namespace pinnace {
namespace {
Status abs_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  if (x.type->quantized()) return map_function(node.threads(), x, y, [](double v) { return std::fabs(v); });
  return visit(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_elements<T, T>(node.threads(), x, y, [](Wide<T> v) {
      if constexpr (is_float<T>) {
        return std::fabs(v);
      } else if constexpr (std::is_signed_v<T>) {
        return v < 0 ? wrap<T>(0 - static_cast<uint64_t>(v)) : v;
      } else {
        return v;
      }
    });
    return Status();
  });
}
}  // namespace

PINNACE_OP(abs){
    .name = "abs",
    .inputs = {{"x", kNumbers}},
    .type = same_type,
    .reference = abs_reference,
    .in_place = 1,
    .traits = Trait::kElementwise,
    .unary = UnaryKind::kAbs,
};
}  // namespace pinnace
