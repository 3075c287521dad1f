// celu: y = max(x, 0) + min(0, alpha * (exp(x / alpha) - 1)).
//   x  [...]  floats, or quantised i8 | u8
//   alpha  float, default 1
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN; -inf gives -alpha. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// -0 stays -0. Source: ONNX Celu, opset 28.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status celu_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const double alpha = node.attr_float("alpha");
  return map_function(node.threads(), in[0], out[0],
                      [alpha](double v) { return v >= 0 ? v : alpha * std::expm1(v / alpha); });
}
}  // namespace

PINNACE_OP(celu){
    .name = "celu",
    .inputs = {{"x", kReals}},
    .attrs = {float_attr("alpha", 1.0)},
    .type = real_function_type,
    .reference = celu_reference,
    .in_place = 1,
};
}  // namespace pinnace
