// softsign: y = x / (1 + |x|).
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN for infinities, as the formula gives; -0 stays -0. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. Source: ONNX Softsign, opset 22.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status softsign_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return v / (1.0 + std::fabs(v)); });
}
}  // namespace

PINNACE_OP(softsign){
    .name = "softsign",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = softsign_reference,
    .in_place = 1,
};
}  // namespace pinnace
