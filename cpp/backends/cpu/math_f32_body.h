// Body of math_f32_<level>.cc, compiled once per instruction set; see gemm_f32_tiles_body.h.

#include "backends/cpu/math_f32.h"
#include "backends/cpu/simd_f32.h"

namespace pinnace {
namespace PINNACE_LEVEL {
namespace {

using V = Wide;
using T = V::T;
using I = V::I;
using U = V::U;

inline T root(T x) {
#if PINNACE_LANES == 16
  return _mm512_sqrt_ps(x);
#elif PINNACE_LANES == 8
  return _mm256_sqrt_ps(x);
#elif defined(__x86_64__)
  return _mm_sqrt_ps(x);
#else
  for (int i = 0; i < V::kLanes; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}

/// pow(x, 0.5): -0 gives 0, -inf gives inf.
inline T power_half(T x) {
  return V::select(x == -__builtin_inff(), V::all(__builtin_inff()), root(x + 0.0f));
}

/// log: x = 2^e * m with m in [sqrt(1/2), sqrt(2)), then with s = (m - 1) / (m + 1) the series 2 (s + s^3 / 3 + ... +
/// s^9 / 9), whose next term is below 3e-9. e's share of log(2) is added in two parts, the first exact.
inline T logarithm(T x) {
  // Subnormal numbers are scaled into the range of the others.
  const I small = x < 1.17549435e-38f;
  const T scaled = V::select(small, x * 8388608.0f, x);
  const I exponent = (I)((U)scaled - 0x3f3504f3u) >> 23;  // of negative numbers nonsense, which is replaced below
  const T m = (T)((U)scaled - ((U)exponent << 23));
  const T e = __builtin_convertvector(exponent, T) - V::select(small, V::all(23.0f), T{});
  const T s = (m - 1.0f) / (m + 1.0f), q = s * s;
  const T series = q * (2.0f / 3 + q * (2.0f / 5 + q * (2.0f / 7 + q * (2.0f / 9))));
  T y = e * 0.693359375f + (e * -2.12194440e-4f + s * series + 2.0f * s);
  y = V::select(x == 0.0f, V::all(-__builtin_inff()), y);
  y = V::select(x < 0.0f, V::all(__builtin_nanf("")), y);
  return V::select((x == __builtin_inff()) | (x != x), x, y);
}

/// erf: below 1/2 its series 2 / sqrt(pi) (x - x^3 / 3 + x^5 / 10 - x^7 / 42 + x^9 / 216 - x^11 / 1320), whose next
/// term is below 3e-8 of the sum; V::error_function, which subtracts from 1, has no digits left there.
inline T error_function(T x) {
  const T q = x * x;
  const T series = 1.0f + q * (-1.0f / 3 + q * (1.0f / 10 + q * (-1.0f / 42 + q * (1.0f / 216 + q * (-1.0f / 1320)))));
  return V::select(V::absolute(x) < 0.5f, x * 1.12837917f * series, V::error_function(x));
}

/// exp(x) - 1 for x <= 0: with x = n log(2) + r, 2^n (exp(r) - 1) + (2^n - 1); the series of exp(r) - 1 to r^7 / 5040,
/// whose next term is below 2e-8 of the sum. Below -20 it is -1.
inline T exponential_minus_one(T x) {
  const T clamped = V::at_least(x, V::all(-20.0f));
  const T shifted = clamped * 1.44269504f + 12582912.0f;  // see V::exponential
  const T n = shifted - 12582912.0f;
  const T r = clamped - n * 0.693359375f - n * -2.12194440e-4f;
  const T series =
      1.0f + r * (0.5f + r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r * (1.0f / 720 + r * (1.0f / 5040))))));
  const T power = (T)(((I)shifted - (0x4b400000 - 127)) << 23);
  return V::select(n == 0.0f, r * series, power * (r * series) + (power - 1.0f));
}

/// log(1 + exp(x)) = max(x, 0) + log(1 + t) with t = exp(-|x|); log(1 + t) by the series of logarithm() in s = t / (2 +
/// t), which is at most 1/3: the next term is below 2e-8 of the sum.
inline T softplus(T x) {
  const T t = V::exponential(-V::absolute(x)), s = t / (2.0f + t), q = s * s;
  const T series =
      1.0f + q * (1.0f / 3 + q * (1.0f / 5 + q * (1.0f / 7 + q * (1.0f / 9 + q * (1.0f / 11 + q * (1.0f / 13))))));
  return V::at_least(x, T{}) + 2.0f * s * series;
}

/// x * tanh(log(1 + e)) with e = exp(x) is x * w / (w + 2) with w = e * (e + 2); beyond 20 the quotient is 1.
inline T mish(T x) {
  const T e = V::exponential(V::at_most(x, V::all(20.0f))), w = e * (e + 2.0f);
  return x * (w / (w + 2.0f));
}

/// |y| with the sign of x.
inline T with_sign(T y, T x) {
  return (T)(((I)y & 0x7fffffff) | ((I)x & (int32_t)0x80000000));
}
/// The nearest whole number, half to even. Numbers from 2^23 on are whole; so are infinities, and NaN stays.
inline T nearest(T x) {
  const T size = V::absolute(x);
  return V::select(size < 8388608.0f, with_sign((size + 8388608.0f) - 8388608.0f, x), x);
}
inline T lower(T x) {
  const T y = nearest(x);
  return with_sign(y - V::select(y > x, V::all(1.0f), T{}), y);
}
inline T upper(T x) {
  const T y = nearest(x);
  return with_sign(y + V::select(y < x, V::all(1.0f), T{}), y);
}

inline T sign(T x) {
  const T y = V::select(x > 0.0f, V::all(1.0f), V::select(x < 0.0f, V::all(-1.0f), T{}));
  return V::select(x == x, y, x);
}

/// sin and cos of |x| <= kMostTurned: x = n pi/2 + r. pi/2 in four parts, of which the first three have 11 bits, so
/// that n times each is exact and r loses nothing beside a root; then series in r, next terms below 3e-9 and 3e-8.
constexpr float kMostTurned = 12867.0f;  // n below 2^13
template <int QUARTER>
inline T turned(T x) {
  const T shifted = x * 0.636619772f + 12582912.0f, n = shifted - 12582912.0f;
  const T r = (((x - n * 1.5703125f) - n * 4.83751297e-4f) - n * 7.54953362e-8f) - n * 2.56334407e-12f;
  const T q = r * r;
  const T sine = r * (1.0f + q * (-1.0f / 6 + q * (1.0f / 120 + q * (-1.0f / 5040 + q * (1.0f / 362880)))));
  const T cosine =
      1.0f + q * (-0.5f + q * (1.0f / 24 + q * (-1.0f / 720 + q * (1.0f / 40320 + q * (-1.0f / 3628800)))));
  const I quarter = (I)shifted + QUARTER;
  const T y = V::select((quarter & 1) == 0, sine, cosine);
  return (T)((I)y ^ ((quarter & 2) << 30));
}
inline bool any(I mask) {
#if PINNACE_LANES == 16
  return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif PINNACE_LANES == 8
  return _mm256_movemask_ps((__m256)mask) != 0;
#elif defined(__x86_64__)
  return _mm_movemask_ps((__m128)mask) != 0;
#else
  int32_t all = 0;
  for (int i = 0; i < V::kLanes; ++i) all |= mask[i];
  return all != 0;
#endif
}
/// Numbers beyond kMostTurned, and no numbers, one by one.
template <int QUARTER>
inline T sine(T x) {
  T y = turned<QUARTER>(x);
  if (__builtin_expect(any(~(V::absolute(x) <= kMostTurned)), 0)) {
    for (int i = 0; i < V::kLanes; ++i) {
      const double v = static_cast<double>(x[i]);
      if (!(__builtin_fabs(v) <= static_cast<double>(kMostTurned))) {
        y[i] = static_cast<float>(QUARTER ? __builtin_cos(v) : __builtin_sin(v));
      }
    }
  }
  return y;
}

template <class F>
inline void each_of(const float* x, float* y, int64_t count, F f) {
  int64_t i = 0;
  for (; i + V::kLanes <= count; i += V::kLanes) V::store(y + i, f(V::load(x + i)));
  if (i == count) return;
  float part[V::kLanes] = {};
  __builtin_memcpy(part, x + i, sizeof(float) * static_cast<size_t>(count - i));
  V::store(part, f(V::load(part)));
  __builtin_memcpy(y + i, part, sizeof(float) * static_cast<size_t>(count - i));
}

void map_of_kind(const MathF32& m, const float* x, float* y, int64_t count) {
  switch (m.kind) {
    case MathKind::kNeg:
      return each_of(x, y, count, [](T v) { return -v; });
    case MathKind::kAbs:
      return each_of(x, y, count, [](T v) { return V::absolute(v); });
    case MathKind::kSqrt:
      return each_of(x, y, count, [](T v) { return root(v); });
    case MathKind::kReciprocal:
      return each_of(x, y, count, [](T v) { return 1.0f / v; });
    case MathKind::kErf:
      return each_of(x, y, count, [](T v) { return error_function(v); });
    case MathKind::kLog:
      return each_of(x, y, count, [](T v) { return logarithm(v); });
    case MathKind::kSquare:
      return each_of(x, y, count, [](T v) { return v * v; });
    case MathKind::kCube:
      return each_of(x, y, count, [](T v) { return v * v * v; });
    case MathKind::kRoot:
      return each_of(x, y, count, [](T v) { return power_half(v); });
    case MathKind::kRsqrt:
      return each_of(x, y, count, [](T v) { return 1.0f / power_half(v); });
    case MathKind::kCopy:
      return each_of(x, y, count, [](T v) { return v; });
    case MathKind::kElu:
      return each_of(x, y, count, [&](T v) {
        return V::select(v >= 0.0f, v * m.b, m.a * exponential_minus_one(V::at_most(v * m.c, T{})));
      });
    case MathKind::kSoftplus:
      return each_of(x, y, count, [](T v) { return softplus(v); });
    case MathKind::kSoftsign:
      return each_of(x, y, count, [](T v) { return v / (1.0f + V::absolute(v)); });
    case MathKind::kMish:
      return each_of(x, y, count, [](T v) { return mish(v); });
    case MathKind::kFloor:
      return each_of(x, y, count, [](T v) { return lower(v); });
    case MathKind::kCeil:
      return each_of(x, y, count, [](T v) { return upper(v); });
    case MathKind::kRound:
      return each_of(x, y, count, [](T v) { return nearest(v); });
    case MathKind::kSign:
      return each_of(x, y, count, [](T v) { return sign(v); });
    case MathKind::kSin:
      return each_of(x, y, count, [](T v) { return sine<0>(v); });
    case MathKind::kCos:
      return each_of(x, y, count, [](T v) { return sine<1>(v); });
    case MathKind::kThreshold:
      return each_of(x, y, count, [&](T v) { return V::select(v > m.a, v, T{}); });
    case MathKind::kShrink:
      return each_of(x, y, count, [&](T v) { return V::select(v < -m.b, v + m.a, V::select(v > m.b, v - m.a, T{})); });
  }
}

}  // namespace
}  // namespace PINNACE_LEVEL

#define PINNACE_NAME_(level) math_f32_kernels_##level
#define PINNACE_NAME(level) PINNACE_NAME_(level)
const MathF32Kernels PINNACE_NAME(PINNACE_LEVEL) = {PINNACE_LEVEL::map_of_kind};

}  // namespace pinnace
