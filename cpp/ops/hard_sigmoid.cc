// hard_sigmoid: y = min(max(alpha * x + beta, 0), 1).
//   x  [...]  floats, or quantised i8 | u8
//   alpha  float, default 0.2 as float32
//   beta  float, default 0.5
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN. Computed in double, rounded once. Quantised: by table, see quantized_map.h. Source: ONNX
// HardSigmoid, opset 22.
#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status hard_sigmoid_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const double alpha = node.attr_float("alpha"), beta = node.attr_float("beta");
  return map_function(node.threads(), in[0], out[0],
                      [alpha, beta](double v) { return limit(alpha * v + beta, 0.0, 1.0); });
}
}  // namespace

PINNACE_OP(hard_sigmoid){
    .name = "hard_sigmoid",
    .inputs = {{"x", kReals}},
    .attrs = {float_attr("alpha", 0.2f), float_attr("beta", 0.5)},
    .type = real_function_type,
    .reference = hard_sigmoid_reference,
    .in_place = 1,
};
}  // namespace pinnace
