// log: y = natural logarithm.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// -inf for 0 and -0, NaN below. Computed in double, rounded once. Quantised: by table, see quantized_map.h. Source:
// ONNX Log, opset 13.
#include <cmath>

#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status log_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_function(node.threads(), in[0], out[0], [](double v) { return std::log(v); });
}
}  // namespace

PINNACE_OP(log){
    .name = "log",
    .inputs = {{"x", kReals}},
    .type = real_function_type,
    .reference = log_reference,
    .in_place = 1,
};
}  // namespace pinnace
