// cos: y = cosine.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN for infinities. Computed in double, rounded once. Quantised: by table, see quantized_map.h. Source: ONNX Cos,
// opset 22.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status cos_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return std::cos(v); });
}
}  // namespace

PINNACE_OP(cos){
    .name = "cos",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = cos_reference,
    .in_place = 1,
};
}  // namespace pinnace
