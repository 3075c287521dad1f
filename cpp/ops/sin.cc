// sin: y = sine.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN for infinities; -0 stays -0. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// Source: ONNX Sin, opset 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(sin) = unary_op<UnaryKind::kSin>();
}  // namespace pinnace
