// Fixed-point arithmetic of 16 and 32 bits as integer LSTM cells define it, bit for bit. A 16-bit number of format k
// has the value raw * 2^(k - 15): 15 - k bits behind the point. Nothing here overflows in the sense of C++: sums of 16
// bits wrap, all else saturates.
#pragma once

#include <cstdint>

namespace pinnace {

/// A real factor m * 2^(shift - 31), m in [2^30, 2^31) or 0.
struct FixedFactor {
  int32_t m = 0;
  int shift = 0;
};
inline constexpr double kMostFactor = 1 << 30;
/// The nearest factor to d in [0, kMostFactor); 0 for what is below 2^-32.
FixedFactor fixed_factor(double d);

int16_t saturate16(int64_t x);
int32_t saturate32(int64_t x);
/// x / 2^bits to the nearest, halves away from zero. bits in [0, 62]; |x| below 2^62.
int64_t round_shift(int64_t x, int bits);
/// a * b / 2^31 to the nearest: halves up, for negative products towards zero beyond the half; -2^31 squared saturates.
int32_t high_product(int32_t a, int32_t b);
/// The same of 16 bits.
int16_t high_product16(int16_t a, int16_t b);
/// x times the factor.
int32_t multiply(int32_t x, FixedFactor by);

/// 1 / (1 + e^-a) of a in format k, as format 0. k in [0, 6].
int16_t fixed_sigmoid(int16_t a, int k);
/// tanh(a) likewise.
int16_t fixed_tanh(int16_t a, int k);
/// 1 / sqrt(v), by Newton's method; 2^31 - 1 for v of 1 and less.
FixedFactor fixed_inverse_sqrt(int32_t v);

}  // namespace pinnace
