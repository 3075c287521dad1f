// sinh: y = hyperbolic sine.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// -0 stays -0. Computed in double, rounded once. Quantised: by table, see quantized_map.h. NaN and infinities stay.
// Source: ONNX Sinh, opset 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(sinh) = unary_op<UnaryKind::kSinh>();
}  // namespace pinnace
