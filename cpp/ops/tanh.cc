// tanh: y = hyperbolic tangent.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// -0 stays -0; infinities give +-1. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// NaN stays NaN. Source: ONNX Tanh, opset 13.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(tanh) = unary_op<UnaryKind::kTanh>(Trait::kFoldsQuantization);
}  // namespace pinnace
