// silu: y = x / (1 + exp(-x)).
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN; -inf gives NaN, as the formula does. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. Source: ONNX Swish, opset 24, with alpha 1.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status silu_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return v / (1.0 + std::exp(-v)); });
}
}  // namespace

PINNACE_OP(silu){
    .name = "silu",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = silu_reference,
    .in_place = 1,
};
}  // namespace pinnace
