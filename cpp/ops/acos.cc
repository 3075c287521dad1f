// acos: y = arc cosine.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN outside [-1, 1]. Computed in double, rounded once. Quantised: by table, see quantized_map.h. Source: ONNX Acos,
// opset 22.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status acos_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return std::acos(v); });
}
}  // namespace

PINNACE_OP(acos){
    .name = "acos",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = acos_reference,
    .in_place = 1,
};
}  // namespace pinnace
