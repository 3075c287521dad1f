// thresholded_relu: y = x where x > alpha, else 0.
//   x  [...]  floats, or quantised i8 | u8
//   alpha  float, default 1
//   y  as x; quantised: declared scale and zero point
// NaN gives 0, as the definition says. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// Source: ONNX ThresholdedRelu, opset 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(thresholded_relu) = unary_op<UnaryKind::kThresholdedRelu>();
}  // namespace pinnace
