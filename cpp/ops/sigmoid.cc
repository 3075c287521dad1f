// sigmoid: y = 1 / (1 + exp(-x)).
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// 0 for -inf, 1 for inf. Computed in double, rounded once. Quantised: by table, see quantized_map.h. NaN stays NaN.
// Source: ONNX Sigmoid, opset 13.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status sigmoid_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return 1.0 / (1.0 + std::exp(-v)); });
}
}  // namespace

PINNACE_OP(sigmoid){
    .name = "sigmoid",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = sigmoid_reference,
    .in_place = 1,
};
}  // namespace pinnace
