// The shaders' arithmetic in 64-bit floats, compiled here, against this processor's.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "cases/parse_case.h"

namespace pinnace::testing {
namespace {

// What the shader takes from GLSL.
using std::max;
using uint = uint32_t;
struct uvec2 {
  uint x, y;
  explicit uvec2(uint both) : x(both), y(both) {}
  uvec2(uint low, uint high) : x(low), y(high) {}
  uvec2 operator~() const { return {~x, ~y}; }
};
int findMSB(uint v) {
  return 31 - std::countl_zero(v);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wunused-function"
#include "backends/gpu/shaders/double.glsl"
#pragma GCC diagnostic pop

uint64_t bits(double value) {
  return std::bit_cast<uint64_t>(value == 0 ? 0.0 : value);
}
uvec2 words(double value) {
  return {static_cast<uint>(bits(value)), static_cast<uint>(bits(value) >> 32)};
}
uint64_t joined(uvec2 v) {
  return uint64_t{v.y} << 32 | v.x;
}

/// Zeros, small integers, float32 values, mantissas of all ones, and any number within 2^70 of 1.
double draw(std::mt19937_64& random) {
  const uint64_t any = random();
  const auto with = [&](uint64_t mantissa, uint64_t exponent) {
    return std::bit_cast<double>((any & 0x8000000000000000) | exponent << 52 | (mantissa & 0xfffffffffffff));
  };
  switch (random() % 6) {
    case 0:
      return 0;
    case 1:
      return static_cast<double>(any % 1000) - 500;
    case 2:
      return static_cast<double>(static_cast<float>(static_cast<int64_t>(any))) * 0x1p-60;
    case 3:
      return with(~(random() % 4), 963 + random() % 120);
    case 4:
      return with(any, 1020 + random() % 6);
    default:
      return with(any, 953 + random() % 140);
  }
}

TEST(GpuDouble, RoundsAsThisProcessorDoes) {
  std::mt19937_64 random(test_seed());
  for (int i = 0; i < 300'000; ++i) {
    const double a = draw(random);
    // Every fourth sum cancels but for the last bits.
    const double b = i % 4 == 0 && a != 0 ? -a * (1 + (static_cast<double>(random() % 5) - 2) * 0x1p-52) : draw(random);
    ASSERT_EQ(joined(add_doubles(words(a), words(b))), bits(a + b)) << a << " + " << b;
    ASSERT_EQ(joined(multiply_doubles(words(a), words(b))), bits(a * b)) << a << " * " << b;
    if (b != 0) {
      ASSERT_EQ(joined(divide_doubles(words(a), words(b))), bits(a / b)) << a << " / " << b;
    }
    ASSERT_EQ(joined(root_of_double(words(std::fabs(a)))), bits(std::sqrt(std::fabs(a)))) << "root of " << a;
    ASSERT_EQ(less64(order_of(words(a)), order_of(words(b))), a < b) << a << ", " << b;
  }
}

// Floats of all exponents, subnormal ones among them, to 64 bits and back; their quotients, which rounding once more
// leaves right; whole numbers.
TEST(GpuDouble, TakesAndMakesFloats) {
  std::mt19937_64 random(test_seed());
  const auto draw_float = [&] {
    const auto any = std::bit_cast<float>(static_cast<uint>(random()));
    return std::isfinite(any) && any != 0 ? any : std::bit_cast<float>(static_cast<uint>(random() % 0xffffff + 1));
  };
  for (int i = 0; i < 300'000; ++i) {
    const float a = draw_float(), b = draw_float();
    ASSERT_EQ(joined(widened(std::bit_cast<uint>(a))), bits(static_cast<double>(a))) << a;
    const double number = static_cast<double>(a) * 1.2345678901;
    ASSERT_EQ(narrowed(words(number)), std::bit_cast<uint>(static_cast<float>(number))) << number;
    const uvec2 quotient = divide_doubles(widened(std::bit_cast<uint>(a)), widened(std::bit_cast<uint>(b)));
    ASSERT_EQ(narrowed(quotient), std::bit_cast<uint>(a / b)) << a << " / " << b;
    const auto whole = static_cast<uint>(random() >> (32 + random() % 32));
    ASSERT_EQ(joined(whole_double(whole)), bits(whole)) << whole;
  }
}

}  // namespace
}  // namespace pinnace::testing
