// softsign: y = x / (1 + |x|).
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN for infinities, as the formula gives; -0 stays -0. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. Source: ONNX Softsign, opset 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(softsign) = unary_op<UnaryKind::kSoftsign>();
}  // namespace pinnace
