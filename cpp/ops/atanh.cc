// atanh: y = inverse hyperbolic tangent.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// +-1 give infinities, NaN beyond. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// Source: ONNX Atanh, opset 22.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status atanh_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return std::atanh(v); });
}
}  // namespace

PINNACE_OP(atanh){
    .name = "atanh",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = atanh_reference,
    .in_place = 1,
};
}  // namespace pinnace
