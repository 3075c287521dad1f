// sqrt: y = square root.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN below 0; -0 stays -0. Computed in double, rounded once. Quantised: by table, see quantized_map.h. Source: ONNX
// Sqrt, opset 13.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(sqrt) = unary_op<UnaryKind::kSqrt>();
}  // namespace pinnace
