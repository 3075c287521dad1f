// hard_swish: y = x * min(max(x / 6 + 1 / 2, 0), 1).
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN; -inf gives NaN, as the formula does. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. Source: ONNX HardSwish, opset 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(hard_swish) = unary_op<UnaryKind::kHardSwish>(Trait::kFoldsQuantization);
}  // namespace pinnace
