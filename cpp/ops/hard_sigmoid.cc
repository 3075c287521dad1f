// hard_sigmoid: y = min(max(alpha * x + beta, 0), 1).
//   x  [...]  floats, or quantised i8 | u8
//   alpha  float, default 0.2 as float32
//   beta  float, default 0.5
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN. Computed in double, rounded once. Quantised: by table, see quantized_map.h. Source: ONNX
// HardSigmoid, opset 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(hard_sigmoid) = unary_op<UnaryKind::kHardSigmoid>(Trait::kFoldsQuantization);
}  // namespace pinnace
