// leaky_relu: y = x where x >= 0, else alpha * x.
//   x  [...]  floats, or quantised i8 | u8
//   alpha  float, default 0.01 as float32
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN and -0 stays -0. Computed in double, rounded once. Quantised: by table, see quantized_map.h. Source:
// ONNX LeakyRelu, opset 16.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(leaky_relu) = unary_op<UnaryKind::kLeakyRelu>(Trait::kFoldsQuantization);
}  // namespace pinnace
