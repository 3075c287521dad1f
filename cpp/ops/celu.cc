// celu: y = max(x, 0) + min(0, alpha * (exp(x / alpha) - 1)).
//   x  [...]  floats, or quantised i8 | u8
//   alpha  float, default 1
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN; -inf gives -alpha. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// -0 stays -0. Source: ONNX Celu, opset 28.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(celu) = unary_op<UnaryKind::kCelu>();
}  // namespace pinnace
