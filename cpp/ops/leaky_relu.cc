// leaky_relu: y = x where x >= 0, else alpha * x.
//   x  [...]  floats, or quantised i8 | u8
//   alpha  float, default 0.01 as float32
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN and -0 stays -0. Computed in double, rounded once. Quantised: by table, see quantized_map.h. Source:
// ONNX LeakyRelu, opset 16.
#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status leaky_relu_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const double alpha = node.attr_float("alpha");
  return map_function(node.threads(), in[0], out[0], [alpha](double v) { return v >= 0 ? v : alpha * v; });
}
}  // namespace

PINNACE_OP(leaky_relu){
    .name = "leaky_relu",
    .inputs = {{"x", kReals}},
    .attrs = {float_attr("alpha", 0.01f)},
    .type = real_function_type,
    .reference = leaky_relu_reference,
    .in_place = 1,
};
}  // namespace pinnace
