// erf: y = the error function 2 / sqrt(pi) * integral of exp(-t^2) from 0 to x.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// -0 stays -0; infinities give +-1. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// NaN stays NaN. Source: ONNX Erf, opset 13.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(erf) = unary_op<UnaryKind::kErf>();
}  // namespace pinnace
