// erf: y = the error function 2 / sqrt(pi) * integral of exp(-t^2) from 0 to x.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// -0 stays -0; infinities give +-1. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// NaN stays NaN. Source: ONNX Erf, opset 13.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status erf_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return std::erf(v); });
}
}  // namespace

PINNACE_OP(erf){
    .name = "erf",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = erf_reference,
    .in_place = 1,
};
}  // namespace pinnace
