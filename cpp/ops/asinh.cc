// asinh: y = inverse hyperbolic sine.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// -0 stays -0. Computed in double, rounded once. Quantised: by table, see quantized_map.h. NaN and infinities stay.
// Source: ONNX Asinh, opset 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(asinh) = unary_op<UnaryKind::kAsinh>();
}  // namespace pinnace
