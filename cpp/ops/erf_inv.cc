// erf_inv: y = the inverse of erf: erf(y) = x.
//   x  [...]  floats
//   y  as x
// inf at 1, -inf at -1, NaN outside [-1, 1]; -0 stays. A first guess from the logarithm, then Newton's steps on erf (on
// erfc near the ends, where erf has no digits left), in double, rounded once. ONNX has no such operator; PyTorch's
// erfinv.
#include <cmath>

#include "ops/lines.h"

namespace pinnace {
namespace {
double inverse_erf(double x) {
  if (!(std::abs(x) < 1)) return std::abs(x) == 1 ? std::copysign(INFINITY, x) : std::nan("");
  // Winitzki's formula, good to 0.002.
  constexpr double kA = 0.147, kTwoOverPiA = 2 / (3.14159265358979323846 * kA);
  const double log = std::log1p(-x * x), half = kTwoOverPiA + log / 2;
  double y = std::sqrt(std::sqrt(half * half - log / kA) - half);
  const double magnitude = std::abs(x), rest = 1 - magnitude;
  constexpr double kHalfRootPi = 0.88622692545275801365;
  for (int i = 0; i < 4; ++i) {
    const double error = magnitude < 0.5 ? std::erf(y) - magnitude : rest - std::erfc(y);
    y -= error * kHalfRootPi * std::exp(y * y);
  }
  return std::copysign(y, x);
}

Status erf_inv_reference(const NodeView&, std::span<const TensorView> in, std::span<const TensorView> out) {
  return visit_float(in[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < out[0].elements(); ++i) {
      out[0].data<T>()[i] = narrow<T>(inverse_erf(widen(in[0].data<T>()[i])));
    }
    return Status();
  });
}
}  // namespace

PINNACE_OP(erf_inv){
    .name = "erf_inv",
    .inputs = {{"x", kFloats}},
    .type = [](const NodeView& node) -> Result<TensorType> { return node.input(0); },
    .reference = erf_inv_reference,
    .in_place = 1,
    .traits = Trait::kElementwise,
    .work = Work::kSorted,
};
}  // namespace pinnace
