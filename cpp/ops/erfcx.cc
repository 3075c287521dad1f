// erfcx: y = exp(x^2) erfc(x), the scaled complementary error function.
//   x  [...]  floats
//   y  as x
// inf below about -26.6, 0 at inf; NaN stays. Up to 20 from its parts, whose product neither overflows nor vanishes
// there, beyond it by the continued fraction, in double, rounded once. ONNX has no such operator; PyTorch's
// special.erfcx.
#include <cmath>

#include "ops/element.h"

namespace pinnace {
namespace {
double erfcx_of(double x) {
  if (x < 20) {
    // x^2 in two parts, the larger one exact: exp() of a rounded square would lose digits.
    const double square = x * x, rest = std::fma(x, x, -square);
    return std::exp(square) * (std::isinf(square) ? 1 : 1 + rest) * std::erfc(x);
  }
  double y = x;
  for (int k = 30; k > 0; --k) y = x + k / 2.0 / y;
  return 1 / y / std::sqrt(3.14159265358979323846);
}

Status erfcx_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return map_floats(node.threads(), in[0], out[0], erfcx_of);
}
}  // namespace

PINNACE_OP(erfcx){
    .name = "erfcx",
    .inputs = {{"x", kFloats}},
    .type = same_type,
    .reference = erfcx_reference,
    .in_place = 1,
    .traits = Trait::kElementwise,
};
}  // namespace pinnace
