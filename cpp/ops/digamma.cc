// digamma: y = the derivative of log gamma(x).
//   x  [...]  floats
//   y  as x
// -inf at 0, inf at -0, NaN at negative whole numbers and -inf; inf gives inf. Below 0 by reflection, up to 10 by
// recurrence, then by the asymptotic series to the 14th power, in double, rounded once. ONNX has no such operator;
// PyTorch's digamma.
#include <cmath>

#include "ops/lines.h"

namespace pinnace {
namespace {
double digamma_of(double x) {
  if (x == 0) return std::copysign(INFINITY, -x);
  if (std::isinf(x)) return x > 0 ? x : std::nan("");
  double y = 0;
  if (x < 0) {
    if (x == std::floor(x)) return std::nan("");
    double whole;
    constexpr double kPi = 3.14159265358979323846;
    y = -kPi / std::tan(kPi * std::modf(x, &whole));
    x = 1 - x;
  }
  while (x < 10) {
    y -= 1 / x;
    x += 1;
  }
  const double z = 1 / (x * x);
  const double series =
      z *
      (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  return y + std::log(x) - 0.5 / x - series;
}

Status digamma_reference(const NodeView&, std::span<const TensorView> in, std::span<const TensorView> out) {
  return visit_float(in[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < out[0].elements(); ++i) {
      out[0].data<T>()[i] = narrow<T>(digamma_of(widen(in[0].data<T>()[i])));
    }
    return Status();
  });
}
}  // namespace

PINNACE_OP(digamma){
    .name = "digamma",
    .inputs = {{"x", kFloats}},
    .type = [](const NodeView& node) -> Result<TensorType> { return node.input(0); },
    .reference = digamma_reference,
    .in_place = 1,
    .traits = Trait::kElementwise,
    .work = Work::kSorted,
};
}  // namespace pinnace
