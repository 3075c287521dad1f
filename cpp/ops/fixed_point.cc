// Fixed-point arithmetic: factors, rounding, and functions by series and Newton's method.
#include "ops/fixed_point.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace pinnace {
namespace {

constexpr int32_t kMost32 = std::numeric_limits<int32_t>::max(), kLeast32 = std::numeric_limits<int32_t>::min();

int16_t wrap16(int32_t x) {
  return static_cast<int16_t>(static_cast<uint16_t>(static_cast<uint32_t>(x)));
}

/// x * 2^e, saturated, or for a negative e rounded.
int16_t scaled16(int16_t x, int e) {
  return e > 0 ? saturate16(static_cast<int64_t>(x) << e) : static_cast<int16_t>(round_shift(x, -e));
}

/// A constant of 32 bits in 16.
int16_t constant16(int32_t x) {
  return saturate16(round_shift(x, 16));
}

/// e^a for a in [-1/4, 0), format 0: Taylor's series around -1/8, to the fourth power.
int16_t exp_of_quarter(int16_t a) {
  const int16_t x = wrap16(a + (1 << 12));
  const int16_t x2 = high_product16(x, x), x3 = high_product16(x2, x), x4 = high_product16(x2, x2);
  const int16_t third = high_product16(wrap16(scaled16(x4, -2) + x3), constant16(715827883));
  const int16_t tail = scaled16(wrap16(third + x2), -1);
  const int16_t start = constant16(1895147668);  // e^(-1/8)
  return saturate16(start + high_product16(start, wrap16(x + tail)));
}

/// e^a for a <= 0 in format k, as format 0: the rest below a quarter by series, each bit above it by a factor.
int16_t exp_of_negative(int16_t a, int k) {
  if (a == 0) return 32767;
  const int fraction = 15 - k;
  if (k > 5 && a < -(32 << fraction)) return 0;
  constexpr struct {
    int exponent;
    int32_t factor;  // e^-(2^exponent)
  } kBits[] = {{-2, 1672461947}, {-1, 1302514674}, {0, 790015084}, {1, 290630308},
               {2, 39332535},    {3, 720401},      {4, 242}};
  const int32_t quarter = 1 << (fraction - 2);
  const auto rest = static_cast<int16_t>((a & (quarter - 1)) - quarter);
  int16_t result = exp_of_quarter(scaled16(rest, k));
  const int32_t above = rest - a;
  for (const auto& bit : kBits) {
    if (k > bit.exponent && (above >> (fraction + bit.exponent) & 1)) {
      result = high_product16(result, constant16(bit.factor));
    }
  }
  return result;
}

/// 2 / (1 + a) for a in [0, 1], format 0, as format 2.
int16_t twice_reciprocal(int16_t a) {
  const auto half = static_cast<int16_t>((a + 32767 + 1) / 2);
  int16_t x = wrap16(constant16(1515870810) + high_product16(half, constant16(-1010580540)));
  for (int i = 0; i < 3; ++i) {
    x = wrap16(x + scaled16(high_product16(x, wrap16(8192 - high_product16(half, x))), 2));
  }
  return x;
}

int16_t minus_magnitude(int16_t a) {
  return a > 0 ? static_cast<int16_t>(-a) : a;
}

}  // namespace

int16_t saturate16(int64_t x) {
  return static_cast<int16_t>(std::clamp<int64_t>(x, -32768, 32767));
}

int32_t saturate32(int64_t x) {
  return static_cast<int32_t>(std::clamp<int64_t>(x, kLeast32, kMost32));
}

int64_t round_shift(int64_t x, int bits) {
  if (bits == 0) return x;
  const int64_t half = int64_t{1} << (bits - 1);
  return x >= 0 ? (x + half) >> bits : -((-x + half) >> bits);
}

int32_t high_product(int32_t a, int32_t b) {
  if (a == kLeast32 && b == kLeast32) return kMost32;
  const int64_t product = static_cast<int64_t>(a) * b;
  const int64_t nudge = product >= 0 ? int64_t{1} << 30 : 1 - (int64_t{1} << 30);
  return static_cast<int32_t>((product + nudge) / (int64_t{1} << 31));
}

int16_t high_product16(int16_t a, int16_t b) {
  const int32_t product = a * b;
  const int32_t nudge = product >= 0 ? 1 << 14 : 1 - (1 << 14);
  return saturate16((product + nudge) / (1 << 15));
}

FixedFactor fixed_factor(double d) {
  FixedFactor factor;
  if (!(d > 0)) return factor;
  auto m = static_cast<int64_t>(std::round(std::frexp(d, &factor.shift) * 2147483648.0));
  if (m == int64_t{1} << 31) {
    m /= 2;
    ++factor.shift;
  }
  if (factor.shift < -31) return {};
  factor.m = static_cast<int32_t>(m);
  return factor;
}

int32_t multiply(int32_t x, FixedFactor by) {
  const int left = std::clamp(by.shift, 0, 31), right = std::max(-by.shift, 0);  // 31 saturate whatever is not 0
  return static_cast<int32_t>(round_shift(high_product(saturate32(static_cast<int64_t>(x) << left), by.m), right));
}

int16_t fixed_sigmoid(int16_t a, int k) {
  if (a == 0) return 16384;
  const int16_t result = scaled16(twice_reciprocal(exp_of_negative(minus_magnitude(a), k)), 1);
  return a > 0 ? result : wrap16(32767 - result);
}

int16_t fixed_tanh(int16_t a, int k) {
  if (a == 0) return 0;
  const int16_t result = scaled16(wrap16(twice_reciprocal(exp_of_negative(minus_magnitude(a), k + 1)) - 8192), 2);
  return a > 0 ? result : wrap16(-result);
}

FixedFactor fixed_inverse_sqrt(int32_t v) {
  if (v <= 1) return {kMost32, 0};
  int shift = 11;
  while (v >= 1 << 29) {
    v /= 4;
    ++shift;
  }
  const int pairs = (std::countl_zero(static_cast<uint32_t>(v)) - 1) / 2 - 1;
  shift -= pairs;
  v <<= 2 * pairs;
  const int32_t half = v / 2, half_of_half = static_cast<int32_t>(round_shift(half, 1));
  constexpr int32_t kOneAndHalf = (1 << 28) + (1 << 27);
  int32_t x = 1 << 28;
  for (int i = 0; i < 5; ++i) {
    const int32_t x3 = saturate32(static_cast<int64_t>(high_product(high_product(x, x), x)) * 64);
    x = saturate32((static_cast<int64_t>(high_product(kOneAndHalf, x)) - high_product(half_of_half, x3)) * 8);
  }
  x = high_product(x, 1518500250);
  if (shift < 0) {
    x = saturate32(static_cast<int64_t>(x) << -shift);
    shift = 0;
  }
  return {x, -shift};
}

}  // namespace pinnace
