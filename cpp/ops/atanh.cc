// atanh: y = inverse hyperbolic tangent.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// +-1 give infinities, NaN beyond. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// Source: ONNX Atanh, opset 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(atanh) = unary_op<UnaryKind::kAtanh>();
}  // namespace pinnace
