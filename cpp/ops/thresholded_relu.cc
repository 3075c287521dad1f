// thresholded_relu: y = x where x > alpha, else 0.
//   x  [...]  floats, or quantised i8 | u8
//   alpha  float, default 1
//   y  as x; quantised: declared scale and zero point
// NaN gives 0, as the definition says. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// Source: ONNX ThresholdedRelu, opset 22.
#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status thresholded_relu_reference(const NodeView& node, std::span<const TensorView> in,
                                  std::span<const TensorView> out) {
  const double alpha = node.attr_float("alpha");
  return map_function(node.threads(), in[0], out[0], [alpha](double v) { return v > alpha ? v : 0.0; });
}
}  // namespace

PINNACE_OP(thresholded_relu){
    .name = "thresholded_relu",
    .inputs = {{"x", kReals}},
    .attrs = {float_attr("alpha", 1.0)},
    .type = real_function_type,
    .reference = thresholded_relu_reference,
    .in_place = 1,
};
}  // namespace pinnace
