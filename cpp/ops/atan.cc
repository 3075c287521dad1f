// atan: y = arc tangent.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// -0 stays -0; infinities give +-pi/2. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// NaN stays NaN. Source: ONNX Atan, opset 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(atan) = unary_op<UnaryKind::kAtan>();
}  // namespace pinnace
