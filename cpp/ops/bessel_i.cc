// bessel_i: y = the modified Bessel function of the first kind, I0(x) or I1(x).
//   x       [...]  floats
//   order   int, default 0; 0 or 1
//   scaled  int, default 0; 1: y is multiplied by exp(-|x|)
//   y       as x
// Up to |x| = 30 the power series, whose terms are all positive, beyond it the asymptotic one, in double, rounded once.
// I1 is odd. Infinities give infinity with the sign of I there, scaled 0; NaN stays. ONNX has no such operator;
// PyTorch's i0, i0e, i1, i1e.
#include <cmath>

#include "ops/lines.h"

namespace pinnace {
namespace {
Result<TensorType> bessel_i_type(const NodeView& node) {
  const int64_t order = node.attr_int("order");
  if (order != 0 && order != 1) return node.error("order is ", order, ", must be 0 or 1");
  return node.input(0);
}

/// Of x >= 0.
double bessel_of(double x, int64_t order, bool scaled) {
  if (std::isinf(x)) return scaled ? 0 : x;
  constexpr double kEnough = 1e-18;
  if (x <= 30) {
    double term = order ? x / 2 : 1, sum = term;
    for (double k = 1; term > sum * kEnough; ++k) {
      term *= x / 2 / k * (x / 2 / (k + static_cast<double>(order)));
      sum += term;
    }
    return scaled ? sum * std::exp(-x) : sum;
  }
  // 1 - (m - 1) / 8x + (m - 1)(m - 9) / 2! (8x)^2 - ..., m = 4 order^2, until a term is the smallest
  const double m = order ? 4 : 0;
  double term = 1, sum = 1;
  for (double k = 1; k < 60; ++k) {
    const double next = term * ((2 * k - 1) * (2 * k - 1) - m) / (8 * k * x);
    if (std::fabs(next) < kEnough || std::fabs(next) > std::fabs(term)) break;
    term = next;
    sum += term;
  }
  sum /= std::sqrt(2 * 3.14159265358979323846) * std::sqrt(x);
  // In two halves, since exp(x) overflows before I(x) does.
  return scaled ? sum : sum * std::exp(x / 2) * std::exp(x / 2);
}

Status bessel_i_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const int64_t order = node.attr_int("order");
  const bool scaled = node.attr_int("scaled") != 0;
  return map_floats(node.threads(), in[0], out[0], [=](double x) {
    const double y = bessel_of(std::fabs(x), order, scaled);
    return order == 1 && std::signbit(x) ? -y : y;
  });
}
}  // namespace

PINNACE_OP(bessel_i){
    .name = "bessel_i",
    .inputs = {{"x", kFloats}},
    .attrs = {int_attr("order", 0), int_attr("scaled", 0)},
    .type = bessel_i_type,
    .reference = bessel_i_reference,
    .in_place = 1,
    .traits = Trait::kElementwise,
    .work = Work::kSorted,
};
}  // namespace pinnace
