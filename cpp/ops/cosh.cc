// cosh: y = hyperbolic cosine.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// Infinity for infinities and where it is too large. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. NaN stays NaN; infinities give inf. Source: ONNX Cosh, opset 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(cosh) = unary_op<UnaryKind::kCosh>();
}  // namespace pinnace
