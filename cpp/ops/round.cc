// round: y = the nearest integer, half to even.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// Infinities and NaN stay; [-0.5, -0] gives -0. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. Source: ONNX Round, opset 22.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status round_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0],
                      [](double v) { return std::nearbyint(v); });  // the default mode is half to even
}
}  // namespace

PINNACE_OP(round){
    .name = "round",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = round_reference,
    .in_place = 1,
};
}  // namespace pinnace
