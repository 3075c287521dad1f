// selu: y = gamma * x where x > 0, else gamma * alpha * (exp(x) - 1).
//   x  [...]  floats, or quantised i8 | u8
//   alpha  float, default 1.67326319217681884765625
//   gamma  float, default 1.05070102214813232421875
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN. Computed in double, rounded once. Quantised: by table, see quantized_map.h. Source: ONNX Selu, opset
// 22.
#include "ops/unary.h"

namespace pinnace {
PINNACE_OP(selu) = unary_op<UnaryKind::kSelu>();
}  // namespace pinnace
