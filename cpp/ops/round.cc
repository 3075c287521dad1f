// round: y = the nearest integer, half to even.
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// Infinities and NaN stay; [-0.5, -0] gives -0. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. Source: ONNX Round, opset 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(round) = unary_op<UnaryKind::kRound>();
}  // namespace pinnace
