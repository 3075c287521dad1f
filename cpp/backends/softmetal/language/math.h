// Metal's component-wise functions of scalars and vectors, its geometric functions, and those of integers. What takes a
// float is computed in float, for half too, and rounded once.
#pragma once

#include "backends/softmetal/language/vectors.h"

namespace metal {

template <class V, class F>
V each(V a, F f) {
  if constexpr (traits<V>::n == 0) {
    return f(a);
  } else {
    V r;
    for (int i = 0; i < traits<V>::n; i++) r[i] = f(a[i]);
    return r;
  }
}
template <class V>
auto lane(const V& v, int i) {
  if constexpr (traits<V>::n == 0)
    return v;
  else
    return v[i];
}
/// The wider of two operands: a scalar goes with a vector.
template <class A, class B>
struct wider_of {
  using type = A;
};
template <Scalar A, Vector B>
struct wider_of<A, B> {
  using type = B;
};
template <Scalar A, Scalar B>
struct wider_of<A, B> {
  using type = decltype(true ? A() : B());
};
template <class A>
  requires(!Vector<A>)
struct wider_of<A, A> {
  using type = A;
};
template <class A, class B>
using wider = typename wider_of<A, B>::type;
template <class A, class B, class F>
auto each2(A a, B b, F f) {
  using V = wider<A, B>;
  using E = typename traits<V>::E;
  if constexpr (traits<V>::n == 0) {
    return static_cast<V>(f(static_cast<E>(a), static_cast<E>(b)));
  } else {
    V r;
    for (int i = 0; i < traits<V>::n; i++) r[i] = f(static_cast<E>(lane(a, i)), static_cast<E>(lane(b, i)));
    return r;
  }
}

#define SM_FLOAT(name, expression)       \
  template <class V>                     \
  V name(V a) {                          \
    using E = typename traits<V>::E;     \
    return each(a, [](E e) -> E {        \
      float x = static_cast<float>(e);   \
      return static_cast<E>(expression); \
    });                                  \
  }
#define SM_FLOAT2(name, expression)                               \
  template <class A, class B>                                     \
  auto name(A a, B b) {                                           \
    return each2(a, b, [](auto u, auto v) {                       \
      float x = static_cast<float>(u), y = static_cast<float>(v); \
      return static_cast<decltype(u)>(expression);                \
    });                                                           \
  }
#define SM_TRANSCENDENTAL                    \
  SM_FLOAT(exp, __builtin_expf(x))           \
  SM_FLOAT(exp2, __builtin_exp2f(x))         \
  SM_FLOAT(exp10, __builtin_powf(10.0f, x))  \
  SM_FLOAT(log, __builtin_logf(x))           \
  SM_FLOAT(log2, __builtin_log2f(x))         \
  SM_FLOAT(log10, __builtin_log10f(x))       \
  SM_FLOAT(sqrt, __builtin_sqrtf(x))         \
  SM_FLOAT(rsqrt, 1.0f / __builtin_sqrtf(x)) \
  SM_FLOAT(sin, __builtin_sinf(x))           \
  SM_FLOAT(cos, __builtin_cosf(x))           \
  SM_FLOAT(tan, __builtin_tanf(x))           \
  SM_FLOAT(tanh, __builtin_tanhf(x))         \
  SM_FLOAT(sinh, __builtin_sinhf(x))         \
  SM_FLOAT(cosh, __builtin_coshf(x))         \
  SM_FLOAT(asinh, __builtin_asinhf(x))       \
  SM_FLOAT(acosh, __builtin_acoshf(x))       \
  SM_FLOAT(atanh, __builtin_atanhf(x))       \
  SM_FLOAT(atan, __builtin_atanf(x))         \
  SM_FLOAT(asin, __builtin_asinf(x))         \
  SM_FLOAT(acos, __builtin_acosf(x))         \
  SM_FLOAT(floor, __builtin_floorf(x))       \
  SM_FLOAT(ceil, __builtin_ceilf(x))         \
  SM_FLOAT(trunc, __builtin_truncf(x))       \
  SM_FLOAT(round, __builtin_roundf(x))       \
  SM_FLOAT(rint, __builtin_rintf(x))         \
  SM_FLOAT(fabs, __builtin_fabsf(x))         \
  SM_FLOAT(fract, x - __builtin_floorf(x))   \
  SM_FLOAT2(pow, __builtin_powf(x, y))       \
  SM_FLOAT2(powr, __builtin_powf(x, y))      \
  SM_FLOAT2(atan2, __builtin_atan2f(x, y))   \
  SM_FLOAT2(fmod, __builtin_fmodf(x, y))     \
  SM_FLOAT2(copysign, __builtin_copysignf(x, y))

// A NaN is undefined to the fast minimum and maximum; here it stays, so that poison shows. The precise ones give the
// other operand, as Metal says.
#define SM_FAST_EXTREMES                                                        \
  template <class A, class B>                                                   \
  auto max(A a, B b) {                                                          \
    return each2(a, b, [](auto x, auto y) { return x < y || y != y ? y : x; }); \
  }                                                                             \
  template <class A, class B>                                                   \
  auto min(A a, B b) {                                                          \
    return each2(a, b, [](auto x, auto y) { return y < x || y != y ? y : x; }); \
  }
#define SM_PRECISE_EXTREMES                                                     \
  template <class A, class B>                                                   \
  auto max(A a, B b) {                                                          \
    return each2(a, b, [](auto x, auto y) { return x < y || x != x ? y : x; }); \
  }                                                                             \
  template <class A, class B>                                                   \
  auto min(A a, B b) {                                                          \
    return each2(a, b, [](auto x, auto y) { return y < x || x != x ? y : x; }); \
  }
#define SM_OF_EXTREMES                                                   \
  template <class A, class B>                                            \
  auto fmax(A a, B b) {                                                  \
    return max(a, b);                                                    \
  }                                                                      \
  template <class A, class B>                                            \
  auto fmin(A a, B b) {                                                  \
    return min(a, b);                                                    \
  }                                                                      \
  template <class A, class B, class C>                                   \
  A clamp(A x, B lo, C hi) {                                             \
    return A(min(max(x, lo), hi));                                       \
  }                                                                      \
  template <class V>                                                     \
  V saturate(V x) {                                                      \
    return clamp(x, typename traits<V>::E(0), typename traits<V>::E(1)); \
  }                                                                      \
  template <class A, class B, class C>                                   \
  auto max3(A a, B b, C c) {                                             \
    return max(max(a, b), c);                                            \
  }                                                                      \
  template <class A, class B, class C>                                   \
  auto min3(A a, B b, C c) {                                             \
    return min(min(a, b), c);                                            \
  }
namespace fast {
SM_TRANSCENDENTAL SM_FAST_EXTREMES SM_OF_EXTREMES
}
namespace precise {
SM_TRANSCENDENTAL SM_PRECISE_EXTREMES SM_OF_EXTREMES
}
SM_TRANSCENDENTAL SM_FAST_EXTREMES SM_OF_EXTREMES

    template <class V>
    V abs(V a) {
  return each(a, [](auto x) -> decltype(x) { return x < 0 ? -x : x; });
}
template <class V>
V sign(V a) {
  return each(a, [](auto x) -> decltype(x) { return x > 0 ? 1 : x < 0 ? -1 : 0; });
}
template <class V>
V fma(V a, V b, V c) {
  if constexpr (traits<V>::n != 0) {
    V r;
    for (int i = 0; i < traits<V>::n; i++) r[i] = fma(a[i], b[i], c[i]);
    return r;
  } else if constexpr (sizeof(V) == 2) {
    return static_cast<V>(static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c));
  } else {
    return __builtin_fmaf(a, b, c);
  }
}
template <class A, class B>
auto step(A edge, B x) {
  return each2(edge, x, [](auto e, auto v) { return decltype(e)(v < e ? 0 : 1); });
}
template <class A, class B, class C>
auto mix(A x, B y, C t) {
  using V = wider<wider<A, B>, C>;
  const V a = V(x), b = V(y), k = V(t);
  return a + (b - a) * k;
}
template <Vector V>
auto dot(V a, V b) {
  typename traits<V>::E sum = a[0] * b[0];
  for (int i = 1; i < traits<V>::n; i++) sum += a[i] * b[i];
  return sum;
}
template <Vector V>
auto length_squared(V a) {
  return dot(a, a);
}
template <Vector V>
auto length(V a) {
  return sqrt(dot(a, a));
}
template <Vector V>
V normalize(V a) {
  return a * rsqrt(dot(a, a));
}

template <class V>
auto isnan(V a) {
  if constexpr (traits<V>::n == 0)
    return __builtin_isnan(static_cast<float>(a)) != 0;
  else
    return bools<traits<V>::n>::each([&](int i) { return __builtin_isnan(static_cast<float>(a[i])) != 0; });
}
template <class V>
auto isinf(V a) {
  if constexpr (traits<V>::n == 0)
    return __builtin_isinf(static_cast<float>(a)) != 0;
  else
    return bools<traits<V>::n>::each([&](int i) { return __builtin_isinf(static_cast<float>(a[i])) != 0; });
}
template <class V>
auto isfinite(V a) {
  return !(isnan(a) || isinf(a));
}

/// The second where the condition holds.
template <class A>
A select(A no, A yes, bool c) {
  return c ? yes : no;
}
template <Vector A, class B>
A select(A no, A yes, B c) {
  A r;
  for (int i = 0; i < traits<A>::n; i++) r[i] = c[i] ? yes[i] : no[i];
  return r;
}

template <class V>
V ldexp(V a, int n) {
  return each(a, [n](auto x) -> decltype(x) { return __builtin_ldexpf(static_cast<float>(x), n); });
}
template <Vector V, Vector I>
V ldexp(V a, I n) {
  V r;
  for (int i = 0; i < traits<V>::n; i++) r[i] = __builtin_ldexpf(static_cast<float>(a[i]), n[i]);
  return r;
}
template <Scalar V>
V modf(V a, V& whole) {
  whole = trunc(a);
  return a - whole;
}
template <Scalar V>
V frexp(V a, int& exponent) {
  return static_cast<V>(__builtin_frexpf(static_cast<float>(a), &exponent));
}

// ---- integers
template <class V>
V popcount(V a) {
  return each(a, [](auto x) -> decltype(x) {
    return __builtin_popcountll(static_cast<ulong>(x) & (~0ull >> (64 - 8 * sizeof x)));
  });
}
template <class V>
V clz(V a) {
  return each(a, [](auto x) -> decltype(x) {
    constexpr int bits = 8 * sizeof x;
    const ulong u = static_cast<ulong>(x) & (~0ull >> (64 - bits));
    return u ? __builtin_clzll(u) - (64 - bits) : bits;
  });
}
template <class V>
V ctz(V a) {
  return each(a, [](auto x) -> decltype(x) { return x ? __builtin_ctzll(static_cast<ulong>(x)) : 8 * sizeof x; });
}
template <class A, class B>
auto mulhi(A a, B b) {
  return each2(a, b, [](auto x, auto y) {
    if constexpr (decltype(x)(-1) < 0)
      return static_cast<decltype(x)>((static_cast<long>(x) * y) >> (8 * sizeof x));
    else
      return static_cast<decltype(x)>((static_cast<ulong>(x) * y) >> (8 * sizeof x));
  });
}
template <class V>
V extract_bits(V a, uint offset, uint bits) {
  return each(a, [=](auto x) -> decltype(x) {
    constexpr uint all = 8 * sizeof x;
    if (bits == 0) return 0;
    return static_cast<decltype(x)>(x << (all - bits - offset)) >> (all - bits);
  });
}
template <class V>
V insert_bits(V base, V insert, uint offset, uint bits) {
  return each2(base, insert, [=](auto b, auto v) {
    const ulong mask = bits == 0 ? 0 : (~0ull >> (64 - bits)) << offset;
    return static_cast<decltype(b)>((static_cast<ulong>(b) & ~mask) | ((static_cast<ulong>(v) << offset) & mask));
  });
}

// ---- small formats
inline float4 unpack_snorm4x8_to_float(uint x) {
  const char4 c = as_type<char4>(x);
  return clamp(__builtin_convertvector(c, float4) / 127.0f, -1.0f, 1.0f);
}
inline float4 unpack_unorm4x8_to_float(uint x) {
  return __builtin_convertvector(as_type<uchar4>(x), float4) / 255.0f;
}
inline uint pack_float_to_snorm4x8(float4 v) {
  return as_type<uint>(__builtin_convertvector(rint(clamp(v, -1.0f, 1.0f) * 127.0f), char4));
}
inline uint pack_float_to_unorm4x8(float4 v) {
  return as_type<uint>(__builtin_convertvector(rint(clamp(v, 0.0f, 1.0f) * 255.0f), uchar4));
}

}  // namespace metal
