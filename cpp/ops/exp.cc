// exp: y = e^x.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// 0 for -inf, infinity where it is too large. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. NaN stays NaN. Source: ONNX Exp, opset 13.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(exp) = unary_op<UnaryKind::kExp>();
}  // namespace pinnace
