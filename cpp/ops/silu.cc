// silu: y = x / (1 + exp(-x)).
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN; -inf gives NaN, as the formula does. Computed in double, rounded once. Quantised: by table, see
// quantized_map.h. Source: ONNX Swish, opset 24, with alpha 1.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(silu) = unary_op<UnaryKind::kSilu>(Trait::kFoldsQuantization);
}  // namespace pinnace
