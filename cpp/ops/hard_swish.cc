// hard_swish: y = x * min(max(x / 6 + 1 / 2, 0), 1).
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN; -inf gives NaN, as the formula does. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. Source: ONNX HardSwish, opset 22.
#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status hard_swish_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return v * limit(v + 3.0, 0.0, 6.0) / 6.0; });
}
}  // namespace

PINNACE_OP(hard_swish){
    .name = "hard_swish",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = hard_swish_reference,
    .in_place = 1,
};
}  // namespace pinnace
