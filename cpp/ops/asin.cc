// asin: y = arc sine.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN outside [-1, 1]; -0 stays -0. Computed in double, rounded once. Quantised: by table, see quantized_map.h.
// Source: ONNX Asin, opset 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(asin) = unary_op<UnaryKind::kAsin>();
}  // namespace pinnace
