// ceil: y = the smallest integer that is not below x.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// Integers, infinities and NaN stay; (-1, -0] gives -0. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. Source: ONNX Ceil, opset 13.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status ceil_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return std::ceil(v); });
}
}  // namespace

PINNACE_OP(ceil){
    .name = "ceil",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = ceil_reference,
    .in_place = 1,
};
}  // namespace pinnace
