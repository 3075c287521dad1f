// floor: y = the largest integer that is not above x.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// Integers, infinities and NaN stay; -0 stays -0. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. Source: ONNX Floor, opset 13.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(floor) = unary_op<UnaryKind::kFloor>();
}  // namespace pinnace
