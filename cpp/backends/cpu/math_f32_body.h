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

void map_of_kind(MathKind kind, const float* x, float* y, int64_t count) {
  switch (kind) {
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
  }
}

}  // namespace
}  // namespace PINNACE_LEVEL

#define PINNACE_NAME_(level) math_f32_kernels_##level
#define PINNACE_NAME(level) PINNACE_NAME_(level)
const MathF32Kernels PINNACE_NAME(PINNACE_LEVEL) = {PINNACE_LEVEL::map_of_kind};

}  // namespace pinnace
