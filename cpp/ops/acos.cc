// acos: y = arc cosine.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN outside [-1, 1]. Computed in double, rounded once. Quantised: by table, see quantized_map.h. Source: ONNX Acos,
// opset 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(acos) = unary_op<UnaryKind::kAcos>();
}  // namespace pinnace
