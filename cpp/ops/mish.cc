// mish: y = x * tanh(softplus(x)), softplus(x) = log(1 + exp(x)).
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN; -inf gives NaN, as the formula does. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. Source: ONNX Mish, opset 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(mish) = unary_op<UnaryKind::kMish>();
}  // namespace pinnace
