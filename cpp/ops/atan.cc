// atan: y = arc tangent.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// -0 stays -0; infinities give +-pi/2. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// NaN stays NaN. Source: ONNX Atan, opset 22.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status atan_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return std::atan(v); });
}
}  // namespace

PINNACE_OP(atan){
    .name = "atan",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = atan_reference,
    .in_place = 1,
};
}  // namespace pinnace
