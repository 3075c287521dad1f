// selu: y = gamma * x where x > 0, else gamma * alpha * (exp(x) - 1).
//   x  [...]  floats, or quantised i8 | u8
//   alpha  float, default 1.67326319217681884765625
//   gamma  float, default 1.05070102214813232421875
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN. Computed in double, rounded once. Quantised: by table, see quantized_map.h. Source: ONNX Selu, opset
// 22.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status selu_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const double alpha = node.attr_float("alpha"), gamma = node.attr_float("gamma");
  return map_function(node.threads(), in[0], out[0],
                      [alpha, gamma](double v) { return v > 0 ? gamma * v : gamma * alpha * std::expm1(v); });
}
}  // namespace

PINNACE_OP(selu){
    .name = "selu",
    .inputs = {{"x", kReals}},
    .attrs = {float_attr("alpha", 1.67326319217681884765625), float_attr("gamma", 1.05070102214813232421875)},
    .type = real_function_type,
    .reference = selu_reference,
    .in_place = 1,
};
}  // namespace pinnace
