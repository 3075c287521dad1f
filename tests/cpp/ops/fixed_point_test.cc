// Fixed-point functions against the real ones, and rounding at its edges.
#include "ops/fixed_point.h"

#include <gtest/gtest.h>

#include <climits>
#include <cmath>

namespace pinnace {
namespace {

/// The largest difference over all arguments of a format.
template <class F, class Real>
double worst(int k, F f, Real real) {
  double most = 0;
  for (int a = -32768; a <= 32767; ++a) {
    const double wanted = real(std::ldexp(a, k - 15)) * 32768;
    most = std::max(most, std::fabs(f(static_cast<int16_t>(a), k) - wanted));
  }
  return most;
}

TEST(FixedPoint, FunctionsAreThoseOfRealNumbers) {
  for (int k = 0; k <= 6; ++k) {
    EXPECT_LT(worst(k, fixed_sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }), 12) << k;
    EXPECT_LT(worst(k, fixed_tanh, [](double x) { return std::tanh(x); }), 24) << k;
  }
  for (int32_t v : {2, 3, 4, 100, 65536, 1 << 20, (1 << 29) - 1, 1 << 29, INT32_MAX}) {
    const FixedFactor r = fixed_inverse_sqrt(v);
    const double real = std::ldexp(r.m, r.shift - 31) * std::sqrt(v);
    EXPECT_NEAR(real, 1, 1e-5) << v;
  }
  EXPECT_EQ(fixed_inverse_sqrt(1).m, INT32_MAX);
}

TEST(FixedPoint, RoundsHalvesAwayFromZeroAndSaturates) {
  EXPECT_EQ(round_shift(3, 1), 2);
  EXPECT_EQ(round_shift(-3, 1), -2);
  EXPECT_EQ(round_shift(5, 2), 1);
  EXPECT_EQ(round_shift(-7, 0), -7);
  EXPECT_EQ(high_product(INT32_MIN, INT32_MIN), INT32_MAX);
  EXPECT_EQ(high_product(1 << 30, 3), 2);    // 1.5
  EXPECT_EQ(high_product(1 << 30, -3), -1);  // -1.5, up
  EXPECT_EQ(high_product16(-32768, -32768), 32767);
  EXPECT_EQ(high_product16(16384, 3), 2);
  EXPECT_EQ(high_product16(16384, -3), -1);
  const FixedFactor half = fixed_factor(0.5), many = fixed_factor(1 << 20), none = fixed_factor(1e-12);
  EXPECT_EQ(half.m, 1 << 30);
  EXPECT_EQ(half.shift, 0);
  EXPECT_EQ(multiply(7, half), 4);
  EXPECT_EQ(multiply(-7, half), -3);
  EXPECT_EQ(multiply(7, many), 7 << 20);
  EXPECT_EQ(multiply(1 << 20, many), 1 << 30);  // saturated before it is halved
  EXPECT_EQ(multiply(INT32_MAX, none), 0);
  EXPECT_EQ(fixed_factor(1 - 0x1p-40).m, 1 << 30);  // rounds up to the next power
}

}  // namespace
}  // namespace pinnace
