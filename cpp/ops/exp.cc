// exp: y = e^x.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// 0 for -inf, infinity where it is too large. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. NaN stays NaN. Source: ONNX Exp, opset 13.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status exp_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return std::exp(v); });
}
}  // namespace

PINNACE_OP(exp){
    .name = "exp",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = exp_reference,
    .in_place = 1,
};
}  // namespace pinnace
