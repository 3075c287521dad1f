// reciprocal: y = 1 / x.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// 0 and -0 give infinities of their sign. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// NaN stays NaN; infinities give zeros of their sign. Source: ONNX Reciprocal, opset 13.
#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status reciprocal_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return 1.0 / v; });
}
}  // namespace

PINNACE_OP(reciprocal){
    .name = "reciprocal",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = reciprocal_reference,
    .in_place = 1,
};
}  // namespace pinnace
