// floor: y = the largest integer that is not above x.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// Integers, infinities and NaN stay; -0 stays -0. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. Source: ONNX Floor, opset 13.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status floor_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return std::floor(v); });
}
}  // namespace

PINNACE_OP(floor){
    .name = "floor",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = floor_reference,
    .in_place = 1,
};
}  // namespace pinnace
