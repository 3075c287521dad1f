// The functions of unary_f32.h in registers.
#include "backends/cpu/unary/unary_f32.h"
#include "backends/cpu/simd/f32.h"
#include "backends/cpu/unary/activation_registers.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
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
/// term is below 3e-8 of the sum; error_function<V>, which subtracts from 1, has no digits left there.
inline T error_function(T x) {
  const T q = x * x;
  const T series = 1.0f + q * (-1.0f / 3 + q * (1.0f / 10 + q * (-1.0f / 42 + q * (1.0f / 216 + q * (-1.0f / 1320)))));
  return V::select(V::absolute(x) < 0.5f, x * 1.12837917f * series, error_function<V>(x));
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
  const T t = exponential<V>(-V::absolute(x)), s = t / (2.0f + t), q = s * s;
  const T series =
      1.0f + q * (1.0f / 3 + q * (1.0f / 5 + q * (1.0f / 7 + q * (1.0f / 9 + q * (1.0f / 11 + q * (1.0f / 13))))));
  return V::at_least(x, T{}) + 2.0f * s * series;
}

/// x * tanh(log(1 + e)) with e = exp(x) is x * w / (w + 2) with w = e * (e + 2); beyond 20 the quotient is 1.
inline T mish(T x) {
  const T e = exponential<V>(V::at_most(x, V::all(20.0f))), w = e * (e + 2.0f);
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
struct Turned {
  T sine, cosine;
  I quarter;  // whose last two bits count
};
inline Turned turn(T x) {
  const T shifted = x * 0.636619772f + 12582912.0f, n = shifted - 12582912.0f;
  const T r = (((x - n * 1.5703125f) - n * 4.83751297e-4f) - n * 7.54953362e-8f) - n * 2.56334407e-12f;
  const T q = r * r;
  const T sine = r * (1.0f + q * (-1.0f / 6 + q * (1.0f / 120 + q * (-1.0f / 5040 + q * (1.0f / 362880)))));
  const T cosine =
      1.0f + q * (-0.5f + q * (1.0f / 24 + q * (-1.0f / 720 + q * (1.0f / 40320 + q * (-1.0f / 3628800)))));
  return {sine, cosine, (I)shifted};
}
template <int QUARTER>
inline T turned(T x) {
  const Turned t = turn(x);
  const I quarter = t.quarter + QUARTER;
  const T y = V::select((quarter & 1) == 0, t.sine, t.cosine);
  return (T)((I)y ^ ((quarter & 2) << 30));
}
inline T turned_tangent(T x) {
  const Turned t = turn(x);
  const I even = (t.quarter & 1) == 0;
  return V::select(even, t.sine, -t.cosine) / V::select(even, t.cosine, t.sine);
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
/// y = f(x) where it was made by turn(), numbers beyond kMostTurned, and no numbers, one by one.
template <class F>
inline T far_too(T x, T y, F f) {
  if (__builtin_expect(any(~(V::absolute(x) <= kMostTurned)), 0)) {
    for (int i = 0; i < V::kLanes; ++i) {
      const double v = static_cast<double>(x[i]);
      if (!(__builtin_fabs(v) <= static_cast<double>(kMostTurned))) y[i] = static_cast<float>(f(v));
    }
  }
  return y;
}
inline T sine(T x) {
  return far_too(x, turned<0>(x), [](double v) { return __builtin_sin(v); });
}
inline T cosine(T x) {
  return far_too(x, turned<1>(x), [](double v) { return __builtin_cos(v); });
}
inline T tangent_of_angle(T x) {
  return far_too(x, turned_tangent(x), [](double v) { return __builtin_tan(v); });
}

/// exp(a) / 2 for a >= 0, which may be finite where exp(a) is not: beyond 80 as exp(a - 44) * (exp(44) / 2), where a -
/// 44 is exact.
inline T half_exponential(T a) {
  const I far = a > 80.0f;
  return exponential<V>(V::select(far, a - 44.0f, a)) * V::select(far, V::all(6.42580057e18f), V::all(0.5f));
}
/// Below 1 by the series x + x^3 / 3! + ... + x^9 / 9!, whose next term is below 3e-8 of the sum.
inline T hyperbolic_sine(T x) {
  const T a = V::absolute(x), q = x * x, e = half_exponential(a);
  const T near = a * (1.0f + q * (1.0f / 6 + q * (1.0f / 120 + q * (1.0f / 5040 + q * (1.0f / 362880)))));
  return with_sign(V::select(a < 1.0f, near, e - 0.25f / e), x);
}
inline T hyperbolic_cosine(T x) {
  const T e = half_exponential(V::absolute(x));
  return e + 0.25f / e;
}

/// asin(a) for a in [0, 1/2]: odd, fitted for the least largest relative error (6e-9), as below.
inline T near_arc_sine(T a) {
  const T q = a * a;
  const T p = 0.16666752f + q * (0.07495298f + q * (0.04547038f + q * (0.0241795f + q * 0.04216634f)));
  return a + a * q * p;
}
/// Beyond 1/2: pi/2 - 2 asin(sqrt((1 - a) / 2)).
inline T arc_sine(T x) {
  const T a = V::absolute(x);
  const I far = a > 0.5f;
  const T y = near_arc_sine(V::select(far, root((1.0f - a) * 0.5f), a));
  return with_sign(V::select(far, 1.57079633f - 2.0f * y, y), x);
}
inline T arc_cosine(T x) {
  const T a = V::absolute(x);
  const I far = a > 0.5f, negative = x < 0.0f;
  const T y = near_arc_sine(V::select(far, root((1.0f - a) * 0.5f), a));
  const T beyond = V::select(negative, 3.14159265f - 2.0f * y, 2.0f * y);
  return V::select(far, beyond, 1.57079633f - V::select(negative, -y, y));
}
/// tan(pi/8) divides [0, 1]: beyond it pi/4 + atan((a - 1) / (a + 1)), and beyond its inverse pi/2 - atan(1 / a).
inline T arc_tangent(T x) {
  const T a = V::absolute(x);
  const I middle = a > 0.414213562f, far = a > 2.41421356f;
  const T up = V::select(far, V::all(-1.0f), V::select(middle, a - 1.0f, a));
  const T z = up / V::select(far, a, V::select(middle, a + 1.0f, V::all(1.0f))), q = z * z;
  // Relative error 3e-9.
  const T p = -0.33333315f + q * (0.19998472f + q * (-0.14243533f + q * (0.10593812f + q * -0.06078217f)));
  const T start = V::select(far, V::all(1.57079633f), V::select(middle, V::all(0.785398163f), T{}));
  return with_sign(start + (z + z * q * p), x);
}

/// log(1 + y) for y >= 0, and NaN below -1: what 1 + y rounds off is made up for.
inline T logarithm_of_more(T y) {
  const T u = 1.0f + y;
  const T z = logarithm(u) + (y - (u - 1.0f)) / u;
  return V::select(u == __builtin_inff(), u, z);
}
/// log(a + sqrt(a^2 + 1)) = log(1 + (a + a^2 / (1 + sqrt(a^2 + 1)))); from 1e9 on log(2 a).
inline T area_sine(T x) {
  const T a = V::absolute(x), q = a * a;
  const T y = V::select(a > 1e9f, logarithm(a) + 0.693147181f, logarithm_of_more(a + q / (1.0f + root(q + 1.0f))));
  return with_sign(y, x);
}
inline T area_cosine(T x) {
  const T t = x - 1.0f;
  const T y = V::select(x > 1e9f, logarithm(x) + 0.693147181f, logarithm_of_more(t + root(t * (x + 1.0f))));
  return V::select(x < 1.0f, V::all(__builtin_nanf("")), y);  // from -2^24 on, t and its root cancel
}
inline T area_tangent(T x) {
  const T a = V::absolute(x);
  return with_sign(0.5f * logarithm_of_more(2.0f * a / (1.0f - a)), x);
}

inline T whole_power(T x, int power) {
  T y = V::all(1.0f);
  for (int left = power < 0 ? -power : power; left; left >>= 1) {
    if (left & 1) y *= x;
    x *= x;
  }
  return power < 0 ? 1.0f / y : y;
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

/// The rows of unary.inc that are no activations, which ActivationLoops has.
void map_of_kind(const UnaryF32& m, const float* from, float* to, int64_t count) {
  [[maybe_unused]] const float p = m.p, q = m.q;
  switch (m.kind) {
#define UNARY_FUSED(kind, simd)
#define UNARY_EPILOGUE(kind, simd)
#define UNARY_ALONE(kind, simd) \
  case UnaryKind::kind:         \
    return each_of(from, to, count, [&](T x) -> T { return simd; });
#define UNARY_POWER(kind, simd) UNARY_ALONE(kind, simd)
#define UNARY(kind, name, use, parameters, reference, simd, glsl) UNARY_##use(kind, simd)
#include "ops/unary.inc"
#undef UNARY
#undef UNARY_FUSED
#undef UNARY_EPILOGUE
#undef UNARY_ALONE
#undef UNARY_POWER
    default:
      return each_of(from, to, count, [](T x) { return x; });
  }
}

// ------------------------------------------------------------------------------------------------- pairs, in double

constexpr int kPairs = PINNACE_LANES / 2;
typedef float Narrow __attribute__((vector_size(4 * kPairs)));
typedef double D __attribute__((vector_size(8 * kPairs)));
typedef int64_t L __attribute__((vector_size(8 * kPairs)));
typedef uint64_t UL __attribute__((vector_size(8 * kPairs)));

constexpr double kWhole = 0x1.8p52;  // x + kWhole - kWhole is whole; the low bits of the sum are the number
constexpr double kInfinity = __builtin_inf();

inline D choose(L mask, D yes, D no) {
  return (D)(((L)yes & mask) | ((L)no & ~mask));
}
inline D everywhere(double x) {
  return x - D{};
}
inline D magnitude(D x) {
  return (D)((L)x & INT64_MAX);
}

/// log2 of a > 0: a = 2^e * m with m in [sqrt(1/2), sqrt(2)), then with s = (m - 1) / (m + 1) the series 2 / log(2) (s
/// + s^3 / 3 + ... + s^11 / 11), whose next term is below 6e-11 of the sum.
inline D binary_logarithm(D a) {
  constexpr uint64_t kRoot = 0x3fe6a09e667f3bcd, kBias = 1024;
  const UL exponent = ((UL)a - kRoot + (kBias << 52)) >> 52;
  const D m = (D)((UL)a - ((exponent - kBias) << 52));
  const D e = (D)(exponent | 0x4330000000000000) - (0x1p52 + static_cast<double>(kBias));
  const D s = (m - 1.0) / (m + 1.0), q = s * s;
  const D series = 1.0 + q * (1.0 / 3 + q * (1.0 / 5 + q * (1.0 / 7 + q * (1.0 / 9 + q * (1.0 / 11)))));
  const D y = e + 2.8853900817779268 * s * series;
  return choose(a == 0.0, everywhere(-kInfinity), choose(a < kInfinity, y, a));
}
/// 2^t: 2^n * exp(f log(2)), |f| <= 1/2, the series to z^7 / 7!, whose next term is below 6e-9.
inline D power_of_two(D t) {
  const D near = choose(t < 1000.0, choose(t > -1000.0, t, everywhere(-1000)), everywhere(1000));
  const D shifted = near + kWhole, z = (near - (shifted - kWhole)) * 0.69314718055994531;
  const D p =
      1.0 +
      z * (1.0 + z * (1.0 / 2 + z * (1.0 / 6 + z * (1.0 / 24 + z * (1.0 / 120 + z * (1.0 / 720 + z * (1.0 / 5040)))))));
  return choose(t == t, (D)((L)p + ((L)shifted << 52)), t);
}

/// 0 and infinities go through logarithms of -inf and inf.
inline D power(D x, D y) {
  const D a = magnitude(x), half = y * 0.5;
  const L small = magnitude(y) < 0x1p30;  // floats from 2^24 on are even
  const L whole = ~small | ((y + kWhole) - kWhole == y), odd = small & whole & ((half + kWhole) - kWhole != half);
  D z = power_of_two(y * binary_logarithm(a));
  z = (D)((L)z | ((L)x & odd & INT64_MIN));
  z = choose((x < 0.0) & (a < kInfinity) & ~whole, everywhere(__builtin_nan("")), z);
  return choose((y == 0.0) | (x == 1.0) | ((a == 1.0) & (magnitude(y) == kInfinity)), everywhere(1), z);
}

/// x - n y for the quotient n rounded towards 0. Up to 2^29 the quotient's fraction is more than double rounds, and n y
/// is exact; others one by one.
inline D remainder(D x, D y) {
  const D a = magnitude(x), b = magnitude(y), quotient = a / b;
  const D nearest = (quotient + 0x1p52) - 0x1p52;
  const D n = choose(nearest > quotient, nearest - 1.0, nearest);
  D r = (D)((L)(a - n * b) | ((L)x & INT64_MIN));
  const L far = ~((quotient < 0x1p29) & (b < kInfinity));
  if (__builtin_expect(any((I)far), 0)) {
    for (int i = 0; i < kPairs; ++i) r[i] = far[i] ? __builtin_fmod(x[i], y[i]) : r[i];
  }
  return r;
}
inline D floor_remainder(D x, D y) {
  const D r = remainder(x, y);
  const L other = (L)(r < 0.0) ^ (L)(y < 0.0);
  const D z = choose(other, r + y, r);
  return choose(r == 0.0, (D)((L)y & INT64_MIN), z);
}

template <class F>
void each_pair(const float* x, int x_step, const float* y, int y_step, float* z, int64_t count, F f) {
  const auto load = [](const float* p, int step) {
    Narrow v = *p - Narrow{};
    if (step) __builtin_memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, D);
  };
  float rest[3][kPairs] = {};
  for (int64_t i = 0; i < count; i += kPairs) {
    const float *p = x + i * x_step, *q = y + i * y_step;
    float* to = z + i;
    const int64_t some = count - i;
    if (some < kPairs) {
      for (int64_t j = 0; j < some; ++j) {
        rest[0][j] = p[j * x_step];
        rest[1][j] = q[j * y_step];
      }
      p = rest[0];
      q = rest[1];
      to = rest[2];
    }
    const Narrow v = __builtin_convertvector(f(load(p, x_step), load(q, y_step)), Narrow);
    __builtin_memcpy(to, &v, sizeof v);
    if (some < kPairs) __builtin_memcpy(z + i, to, 4 * static_cast<size_t>(some));
  }
}

void pair_of_kind(PowerOrModKind kind, const float* x, int x_step, const float* y, int y_step, float* z,
                  int64_t count) {
  switch (kind) {
    case PowerOrModKind::kPower:
      return each_pair(x, x_step, y, y_step, z, count, [](D a, D b) { return power(a, b); });
    case PowerOrModKind::kFloorMod:
      return each_pair(x, x_step, y, y_step, z, count, [](D a, D b) { return floor_remainder(a, b); });
    case PowerOrModKind::kTruncMod:
      return each_pair(x, x_step, y, y_step, z, count, [](D a, D b) { return remainder(a, b); });
  }
}

}  // namespace
}  // namespace PINNACE_ISA

const UnaryLoopsF32 PINNACE_FOR_ISA(unary_loops_f32) = {PINNACE_ISA::map_of_kind, PINNACE_ISA::pair_of_kind};

}  // namespace pinnace::cpu
