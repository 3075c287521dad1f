// softplus: y = log(1 + exp(x)).
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// 0 for -inf, inf for inf; no overflow between. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. NaN stays NaN. Source: ONNX Softplus, opset 22.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status softplus_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0],
                      [](double v) { return std::log1p(std::exp(-std::fabs(v))) + (v > 0 ? v : 0.0); });
}
}  // namespace

PINNACE_OP(softplus){
    .name = "softplus",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = softplus_reference,
    .in_place = 1,
};
}  // namespace pinnace
