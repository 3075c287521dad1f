// reciprocal: y = 1 / x.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// 0 and -0 give infinities of their sign. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// NaN stays NaN; infinities give zeros of their sign. Source: ONNX Reciprocal, opset 13.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(reciprocal) = unary_op<UnaryKind::kReciprocal>();
}  // namespace pinnace
