// asinh: y = inverse hyperbolic sine.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// -0 stays -0. Computed in double, rounded once. Quantised: by table, see quantized_map.h. NaN and infinities stay.
// Source: ONNX Asinh, opset 22.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status asinh_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return std::asinh(v); });
}
}  // namespace

PINNACE_OP(asinh){
    .name = "asinh",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = asinh_reference,
    .in_place = 1,
};
}  // namespace pinnace
