// Activations of registers of floats: the formulas that loops over activations and tiles that apply them share. Bodies
// include it.
#pragma once

#include "backends/cpu/simd/f32.h"
#include "backends/cpu/unary/activation_f32.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

// exp by 2^n * p(r), |r| <= ln(2) / 2, p of degree 6 (Taylor): relative error below 3e-7. Beyond the range of normal
// floats: 0 (AVX-512: denormal numbers first) and infinity. NaN stays NaN.
template <class V>
inline typename V::T exponential(typename V::T x) {
  using T = typename V::T;
#if PINNACE_LANES == 16
  const T clamped = V::at_least(V::at_most(x, V::all(89.0f)), V::all(-104.0f));
  const T n = rounded(clamped * 1.44269504f);
#else
  const T clamped = V::at_least(V::at_most(x, V::all(88.72283f)), V::all(-87.336544f));
  const T shifted = clamped * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: the sum's low bits are the rounded quotient
  const T n = shifted - 12582912.0f;
#endif
  const T r = clamped - n * 0.693359375f - n * -2.12194440e-4f;
  T p = V::all(1.0f / 720);
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
#if PINNACE_LANES == 16
  return scaled(p, n);
#else
  using I = typename V::I;
  const I bits = ((I)shifted - 0x4b400000) << 23;
  T y = (T)((I)p + bits);
  y = V::select(x < -87.336544f, T{}, y);
  y = V::select(x > 88.72283f, V::all(__builtin_inff()), y);  // exp of the next float is 2^128 and more
  return V::select(x == x, y, x);
#endif
}
// exp where only the absolute error counts, 1e-7 of exp(0): one step of argument reduction and a shorter polynomial.
template <class V>
inline typename V::T short_exponential(typename V::T x) {
#if PINNACE_LANES == 16
  using T = typename V::T;
  // 2^f, |f| <= 1/2: degree 5, least largest relative error (8e-8), fitted by iterated least squares.
  const T t = V::at_least(V::at_most(x * 1.44269504f, V::all(150.0f)), V::all(-150.0f)), n = rounded(t), f = t - n;
  T p = V::all(0.00132764444f);
  p = p * f + 0.0096755377f;
  p = p * f + 0.0555071332f;
  p = p * f + 0.240221198f;
  p = p * f + 0.693146967f;
  p = p * f + 1.00000007f;
  return scaled(p, n);
#else
  return exponential<V>(x);
#endif
}
// 1 / (1 + exp(x))
template <class V>
inline typename V::T falling(typename V::T x) {
  return reciprocal(1.0f + short_exponential<V>(x));
}
template <class V>
inline typename V::T sigmoid(typename V::T x) {
  return falling<V>(-x);
}
// 1 - 2 / (1 + exp(2x)) loses digits near 0, where the series is exact enough: |x| < 0.25, error of the next term
// 2e-9.
template <class V>
inline typename V::T tangent(typename V::T x) {
  using T = typename V::T;
  const T far = 1.0f - 2.0f * falling<V>(2.0f * x);
  const T s = x * x;
  const T near = x + x * s * (-1.0f / 3 + s * (2.0f / 15 + s * (-17.0f / 315 + s * (62.0f / 2835))));
  return V::select(V::absolute(x) < 0.25f, near, far);
}
// erf by Abramowitz and Stegun 7.1.26: absolute error 1.5e-7.
template <class V>
inline typename V::T error_function(typename V::T x) {
  using T = typename V::T;
  using I = typename V::I;
  const T a = V::absolute(x);
  const T t = reciprocal(1.0f + 0.3275911f * a);
  const T p = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  const T y = 1.0f - p * short_exponential<V>(-a * a);
  return V::select(x == x, (T)((I)y | ((I)x & (int32_t)0x80000000)), x);
}

/// The rows of unary.inc that are activations, and exp.
template <class V>
inline typename V::T activate(const UnaryF32& m, typename V::T x) {
  using T = typename V::T;
  [[maybe_unused]] const float p = m.p, q = m.q;
  switch (m.kind) {
#define UNARY_ALONE(kind, simd)
#define UNARY_POWER(kind, simd)
#define UNARY_FUSED(kind, simd) \
  case UnaryKind::kind:         \
    return simd;
#define UNARY_EPILOGUE(kind, simd) UNARY_FUSED(kind, simd)
#define UNARY(kind, name, use, parameters, reference, simd, glsl) UNARY_##use(kind, simd)
#include "ops/unary.inc"
#undef UNARY
#undef UNARY_ALONE
#undef UNARY_POWER
#undef UNARY_FUSED
#undef UNARY_EPILOGUE
    case UnaryKind::kExp:
      return exponential<V>(x);
    default:
      return x;
  }
}

/// c = map(c) for one register in each row. Out of line: the maps are long, and inlined into every kernel they would be
/// most of the library; what was just stored is in the nearest cache.
template <class V, class F>
inline void each_row(float* c, ptrdiff_t row, int64_t rows, F f) {
  for (int64_t i = 0; i < rows; ++i, c += row) V::store(c, f(V::load(c)));
}
template <class V>
__attribute__((noinline)) void map_rows(const UnaryF32& map, float* c, ptrdiff_t row, int64_t rows) {
  using T = typename V::T;
  switch (map.kind) {
    case UnaryKind::kHardSwish:
      return each_row<V>(c, row, rows, [](T x) { return activate<V>({UnaryKind::kHardSwish, 0, 0}, x); });
    case UnaryKind::kSilu:
      return each_row<V>(c, row, rows, [](T x) { return activate<V>({UnaryKind::kSilu, 0, 0}, x); });
    default:
      return each_row<V>(c, row, rows, [&](T x) { return activate<V>(map, x); });
  }
}

}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
