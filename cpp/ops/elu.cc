// elu: y = x where x >= 0, else alpha * (exp(x) - 1).
//   x  [...]  floats, or quantised i8 | u8
//   alpha  float, default 1
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN; -inf gives -alpha. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// Source: ONNX Elu, opset 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(elu) = unary_op<UnaryKind::kElu>();
}  // namespace pinnace
