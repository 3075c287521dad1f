// tanh: y = hyperbolic tangent.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// -0 stays -0; infinities give +-1. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// NaN stays NaN. Source: ONNX Tanh, opset 13.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status tanh_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return std::tanh(v); });
}
}  // namespace

PINNACE_OP(tanh){
    .name = "tanh",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = tanh_reference,
    .in_place = 1,
};
}  // namespace pinnace
