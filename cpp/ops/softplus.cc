// softplus: y = log(1 + exp(x)).
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// 0 for -inf, inf for inf; no overflow between. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. NaN stays NaN. Source: ONNX Softplus, opset 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(softplus) = unary_op<UnaryKind::kSoftplus>();
}  // namespace pinnace
