// tan: y = tangent.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN for infinities; -0 stays -0. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// Source: ONNX Tan, opset 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(tan) = unary_op<UnaryKind::kTan>();
}  // namespace pinnace
