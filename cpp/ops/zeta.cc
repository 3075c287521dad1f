// zeta: z = Hurwitz' zeta function, the sum over k >= 0 of (q + k)^-x, broadcast as numpy does.
//   x, q  [...]  floats, the same type
//   z     the broadcast shape
// inf at x = 1 and where q is 0 or a negative whole number; NaN for x < 1, for other negative q unless x is whole, and
// for q below -10^6, since every step up to 0 takes a term.
// Terms are added up to q + k > 9, the rest by the Euler-Maclaurin formula with Bernoulli numbers up to the 24th, in
// double, rounded once. ONNX has no such operator; PyTorch's special.zeta, polygamma by it.
#include <array>
#include <cmath>
#include <limits>

#include "ops/element.h"

namespace pinnace {
namespace {
/// B(2j) / (2j)!, j = 1 to 12
constexpr std::array<double, 12> kBernoulli = {
    1.0 / 12,
    -1.0 / 720,
    1.0 / 30240,
    -1.0 / 1209600,
    1.0 / 47900160,
    -691.0 / 1307674368000.0,
    1.0 / 74724249600.0,
    -3617.0 / 10670622842880000.0,
    43867.0 / 5109094217170944000.0,
    -174611.0 / 802857662698291200000.0,
    77683.0 / 14101100039391805440000.0,
    -236364091.0 / 1693824136731743669452800000.0,
};

double zeta_of(double x, double q) {
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon() / 2;
  if (std::isnan(x) || std::isnan(q)) return x + q;
  if (x == 1) return INFINITY;
  if (x < 1) return std::nan("");
  if (q <= 0) {
    if (q == std::floor(q)) return INFINITY;
    if (x != std::floor(x)) return std::nan("");
  }
  if (q < -1e6) return std::nan("");
  double sum = std::pow(q, -x), at = q, term = 0;
  for (int k = 0; k < 9 || at <= 9; ++k) {
    at += 1;
    term = std::pow(at, -x);
    sum += term;
    if (std::fabs(term) < kEpsilon * std::fabs(sum)) return sum;
  }
  if (term == 0) return sum;
  // The last term was added whole: the integral from there, minus half of it, plus the corrections.
  sum += term * at / (x - 1) - term / 2;
  double factor = 1;
  for (size_t j = 0; j < kBernoulli.size(); ++j) {
    const double k = 2 * static_cast<double>(j);
    factor *= x + k;
    term /= at;
    const double correction = factor * term * kBernoulli[j];
    sum += correction;
    if (std::fabs(correction) < kEpsilon * std::fabs(sum)) return sum;
    factor *= x + k + 1;
    term /= at;
  }
  return sum;
}

Status zeta_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return visit_float(out[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_broadcast<T, T>(node.threads(), in[0], in[1], out[0], [](double x, double q) { return zeta_of(x, q); });
    return Status();
  });
}
}  // namespace

PINNACE_OP(zeta){
    .name = "zeta",
    .inputs = {{"x", kFloats, 'T'}, {"q", kFloats, 'T'}},
    .type = binary_type,
    .reference = zeta_reference,
    .in_place = 0b11,
    .traits = Trait::kElementwise,
    .work = Work::kSorted,
};
}  // namespace pinnace
