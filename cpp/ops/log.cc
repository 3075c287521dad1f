// log: y = natural logarithm.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// -inf for 0 and -0, NaN below. Computed in double, rounded once. Quantised: by table, see quantized_map.h. Source:
// ONNX Log, opset 13.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(log) = unary_op<UnaryKind::kLog>();
}  // namespace pinnace
