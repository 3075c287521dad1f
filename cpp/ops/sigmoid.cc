// sigmoid: y = 1 / (1 + exp(-x)).
//   x  [...]  floats, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// 0 for -inf, 1 for inf. Computed in double, rounded once. Quantised: by table, see quantized_map.h. NaN stays NaN.
// Source: ONNX Sigmoid, opset 13.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(sigmoid) = unary_op<UnaryKind::kSigmoid>(Trait::kFoldsQuantization);
}  // namespace pinnace
