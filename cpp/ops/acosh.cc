// acosh: y = inverse hyperbolic cosine.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN below 1. Computed in double, rounded once. Quantised: by table, see quantized_map.h. Source: ONNX Acosh, opset
// 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(acosh) = unary_op<UnaryKind::kAcosh>();
}  // namespace pinnace
