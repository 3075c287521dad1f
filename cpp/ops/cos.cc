// cos: y = cosine.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN for infinities. Computed in double, rounded once. Quantised: by table, see quantized_map.h. Source: ONNX Cos,
// opset 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(cos) = unary_op<UnaryKind::kCos>();
}  // namespace pinnace
