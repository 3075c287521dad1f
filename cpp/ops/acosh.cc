// acosh: y = inverse hyperbolic cosine.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN below 1. Computed in double, rounded once. Quantised: by table, see quantized_map.h. Source: ONNX Acosh, opset
// 22.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status acosh_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return std::acosh(v); });
}
}  // namespace

PINNACE_OP(acosh){
    .name = "acosh",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = acosh_reference,
    .in_place = 1,
};
}  // namespace pinnace
