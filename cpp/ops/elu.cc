// elu: y = x where x >= 0, else alpha * (exp(x) - 1).
//   x  [...]  floats, or quantised i8 | u8
//   alpha  float, default 1
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN; -inf gives -alpha. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// Source: ONNX Elu, opset 22.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status elu_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const double alpha = node.attr_float("alpha");
  return map_function(node.threads(), in[0], out[0], [alpha](double v) { return v >= 0 ? v : alpha * std::expm1(v); });
}
}  // namespace

PINNACE_OP(elu){
    .name = "elu",
    .inputs = {{"x", kReals}},
    .attrs = {float_attr("alpha", 1.0)},
    .type = real_function_type,
    .reference = elu_reference,
    .in_place = 1,
};
}  // namespace pinnace
