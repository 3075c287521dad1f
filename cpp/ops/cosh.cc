// cosh: y = hyperbolic cosine.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// Infinity for infinities and where it is too large. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. NaN stays NaN; infinities give inf. Source: ONNX Cosh, opset 22.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status cosh_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return std::cosh(v); });
}
}  // namespace

PINNACE_OP(cosh){
    .name = "cosh",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = cosh_reference,
    .in_place = 1,
};
}  // namespace pinnace
