// mish: y = x * tanh(softplus(x)), softplus(x) = log(1 + exp(x)).
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN; -inf gives NaN, as the formula does. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. Source: ONNX Mish, opset 22.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status mish_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0],
                      [](double v) { return v * std::tanh(std::log1p(std::exp(-std::fabs(v))) + (v > 0 ? v : 0.0)); });
}
}  // namespace

PINNACE_OP(mish){
    .name = "mish",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = mish_reference,
    .in_place = 1,
};
}  // namespace pinnace
