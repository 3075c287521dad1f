// tan: y = tangent.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN for infinities; -0 stays -0. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// Source: ONNX Tan, opset 22.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status tan_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return std::tan(v); });
}
}  // namespace

PINNACE_OP(tan){
    .name = "tan",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = tan_reference,
    .in_place = 1,
};
}  // namespace pinnace
