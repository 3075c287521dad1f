// ceil: y = the smallest integer that is not below x.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// Integers, infinities and NaN stay; (-1, -0] gives -0. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. Source: ONNX Ceil, opset 13.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(ceil) = unary_op<UnaryKind::kCeil>();
}  // namespace pinnace
