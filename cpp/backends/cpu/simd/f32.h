// Registers of floats of one instruction set (isa.h). Arithmetic is the compiler's on vector types, which fuses
// multiply and add where the set has it; minimum, maximum and
// conversions are here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/simd/isa.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

/// 16-bit floats in memory; a pair of bfloat16, which stands where a float might.
struct F16Bits {
  uint16_t bits;
};
struct BF16Bits {
  uint16_t bits;
};
struct BF16Pair {
  uint16_t bits[2];
};

// Vector types by their number of lanes (GCC takes no template parameter as vector_size), and the larger and the
// smaller of two. Where one is NaN: the second, as x86's instructions have it, or NaN, as ARM's have it. Callers put
// what may be NaN second.
template <int LANES>
struct VectorOf;
template <>
struct VectorOf<4> {
  using T = float __attribute__((vector_size(16)));
  using I = int32_t __attribute__((vector_size(16)));
  using U = uint32_t __attribute__((vector_size(16)));
  using H = uint16_t __attribute__((vector_size(8)));
};
inline VectorOf<4>::T larger(VectorOf<4>::T a, VectorOf<4>::T b) {
#if defined(__x86_64__)
  return _mm_max_ps(a, b);
#elif defined(__aarch64__)
  return vmaxq_f32(a, b);
#else
  using I = VectorOf<4>::I;
  const I first = a > b;
  return (VectorOf<4>::T)(((I)a & first) | ((I)b & ~first));
#endif
}
inline VectorOf<4>::T smaller(VectorOf<4>::T a, VectorOf<4>::T b) {
#if defined(__x86_64__)
  return _mm_min_ps(a, b);
#elif defined(__aarch64__)
  return vminq_f32(a, b);
#else
  return -larger(-a, -b);
#endif
}
#if PINNACE_LANES >= 8
template <>
struct VectorOf<8> {
  using T = float __attribute__((vector_size(32)));
  using I = int32_t __attribute__((vector_size(32)));
  using U = uint32_t __attribute__((vector_size(32)));
  using H = uint16_t __attribute__((vector_size(16)));
};
inline VectorOf<8>::T larger(VectorOf<8>::T a, VectorOf<8>::T b) {
  return _mm256_max_ps(a, b);
}
inline VectorOf<8>::T smaller(VectorOf<8>::T a, VectorOf<8>::T b) {
  return _mm256_min_ps(a, b);
}
#endif
#if PINNACE_LANES >= 16
template <>
struct VectorOf<16> {
  using T = float __attribute__((vector_size(64)));
  using I = int32_t __attribute__((vector_size(64)));
  using U = uint32_t __attribute__((vector_size(64)));
  using H = uint16_t __attribute__((vector_size(32)));
};
inline VectorOf<16>::T larger(VectorOf<16>::T a, VectorOf<16>::T b) {
  return _mm512_max_ps(a, b);
}
inline VectorOf<16>::T smaller(VectorOf<16>::T a, VectorOf<16>::T b) {
  return _mm512_min_ps(a, b);
}

// To the nearest whole number; p * 2^n, with infinity and 0 where that ends; 1 / x to within 2^-27, 0 for infinity.
inline VectorOf<16>::T rounded(VectorOf<16>::T x) {
  return _mm512_roundscale_ps(x, 0);
}
inline VectorOf<8>::T rounded(VectorOf<8>::T x) {
  return _mm256_roundscale_ps(x, 0);
}
inline VectorOf<16>::T scaled(VectorOf<16>::T p, VectorOf<16>::T n) {
  return _mm512_scalef_ps(p, n);
}
inline VectorOf<8>::T scaled(VectorOf<8>::T p, VectorOf<8>::T n) {
  return _mm256_scalef_ps(p, n);
}
inline VectorOf<16>::T reciprocal(VectorOf<16>::T x) {
  const __m512 guess = _mm512_rcp14_ps(x), error = _mm512_fnmadd_ps(x, guess, _mm512_set1_ps(1));
  return _mm512_mask_fmadd_ps(guess, _mm512_cmp_ps_mask(x, _mm512_set1_ps(__builtin_inff()), _CMP_NEQ_UQ), error,
                              guess);
}
inline VectorOf<8>::T reciprocal(VectorOf<8>::T x) {
  const __m256 guess = _mm256_rcp14_ps(x), error = _mm256_fnmadd_ps(x, guess, _mm256_set1_ps(1));
  return _mm256_mask_fmadd_ps(guess, _mm256_cmp_ps_mask(x, _mm256_set1_ps(__builtin_inff()), _CMP_NEQ_UQ), error,
                              guess);
}
#else
template <class T>
inline T reciprocal(T x) {
  return 1.0f / x;
}
#endif

// Halves to floats and back; see Floats for those that have no instruction.
#if defined(__F16C__)
inline VectorOf<4>::T widened(VectorOf<4>::H h) {
  return _mm_cvtph_ps(_mm_cvtsi64_si128((long long)h));
}
inline VectorOf<4>::H narrowed(VectorOf<4>::T x) {
  return (VectorOf<4>::H)_mm_cvtsi128_si64(_mm_cvtps_ph(x, 0));
}
inline VectorOf<8>::T widened(VectorOf<8>::H h) {
  return _mm256_cvtph_ps((__m128i)h);
}
inline VectorOf<8>::H narrowed(VectorOf<8>::T x) {
  return (VectorOf<8>::H)_mm256_cvtps_ph(x, 0);
}
#elif defined(__aarch64__)
inline VectorOf<4>::T widened(VectorOf<4>::H h) {
  return vcvt_f32_f16((float16x4_t)h);
}
inline VectorOf<4>::H narrowed(VectorOf<4>::T x) {
  return (VectorOf<4>::H)vcvt_f16_f32(x);
}
#endif
#if PINNACE_LANES == 16
inline VectorOf<16>::T widened(VectorOf<16>::H h) {
  return _mm512_cvtph_ps((__m256i)h);
}
inline VectorOf<16>::H narrowed(VectorOf<16>::T x) {
  return (VectorOf<16>::H)_mm512_cvtps_ph(x, 0);
}
#endif

template <int LANES>
struct Floats {
  using T = typename VectorOf<LANES>::T;
  using I = typename VectorOf<LANES>::I;
  using U = typename VectorOf<LANES>::U;  // for sums of bits that may pass the largest signed number
  static constexpr int kLanes = LANES;

  static inline T load(const float* p) {
    T v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static inline void store(float* p, T v) { __builtin_memcpy(p, &v, sizeof v); }

  // 16-bit floats, as base/half.h has them.
  using H = typename VectorOf<LANES>::H;
  static inline T load(const F16Bits* p) {
    H h;
    __builtin_memcpy(&h, p, sizeof h);
#if defined(__F16C__) || defined(__aarch64__)
    return widened(h);
#else
    const I bits = __builtin_convertvector(h, I), magnitude = (bits & 0x7fff) << 13;
    const T finite = (T)magnitude * 0x1p112f;  // exact, for denormal numbers too
    const I special = magnitude >= 0x0f800000;
    return (T)(((I)finite & ~special) | ((magnitude | 0x7f800000) & special) | (bits & 0x8000) << 16);
#endif
  }
  static inline void store(F16Bits* p, T x) {
#if defined(__F16C__) || defined(__aarch64__)
    const H h = narrowed(x);
#else
    const I magnitude = (I)x & 0x7fffffff;
    const I normal = (I)((U)magnitude + (((U)magnitude >> 13) & 1u) - (0x38000000u - 0xfffu)) >> 13;
    const I small = (I)((T)magnitude + 0.5f) - 0x3f000000;  // units of 2^-24 at the end of the mantissa
    const I tiny = magnitude < 0x38800000, large = magnitude >= 0x477ff000, nan = magnitude > 0x7f800000;
    I bits = (normal & ~tiny) | (small & tiny);
    bits = (bits & ~large) | (0x7c00 & large);
    bits = (bits & ~nan) | ((0x7e00 | ((magnitude >> 13) & 0x1ff)) & nan);
    const H h = __builtin_convertvector(bits | (((I)x >> 16) & 0x8000), H);
#endif
    __builtin_memcpy(p, &h, sizeof h);
  }
  static inline T load(const BF16Bits* p) {
    H h;
    __builtin_memcpy(&h, p, sizeof h);
    return (T)(__builtin_convertvector(h, I) << 16);
  }
  static inline void store(BF16Bits* p, T x) {
    const U bits = (U)x, nan = (U)((I)(bits & 0x7fffffffu) > 0x7f800000), high = bits >> 16;
    const U rounded = (bits + 0x7fffu + (high & 1u)) >> 16;
    const H h = __builtin_convertvector((rounded & ~nan) | ((high | 0x40u) & nan), H);
    __builtin_memcpy(p, &h, sizeof h);
  }
  static inline T load(const BF16Pair* p) { return load(reinterpret_cast<const float*>(p)); }
  // x - 0 is x to the bit, which the compiler knows; 0 + x is not, for -0, and costs an addition.
  static inline T all(float x) { return x - T{}; }
  static inline T add(T a, T b) { return a + b; }
  static inline T multiply_add(T a, T b, T c) { return a * b + c; }
  static inline T select(I mask, T yes, T no) { return (T)(((I)yes & mask) | ((I)no & ~mask)); }
  // NaN in x is kept.
  static inline T at_least(T x, T low) { return larger(low, x); }
  static inline T at_most(T x, T high) { return smaller(high, x); }
  static inline T absolute(T x) { return (T)((I)x & 0x7fffffff); }
};

/// sum + value * weight, where both are pairs of bfloat16 the sum of two products.
template <class V, class Weight>
inline typename V::T product_sum(typename V::T value, typename V::T weight, typename V::T sum) {
#if defined(__AVX512BF16__)
  if constexpr (sizeof(typename V::T) == 64) {
    return _mm512_dpbf16_ps(sum, (__m512bh)value, (__m512bh)weight);
  } else if constexpr (sizeof(typename V::T) == 32) {
    return _mm256_dpbf16_ps(sum, (__m256bh)value, (__m256bh)weight);
  }
#else
  return V::multiply_add(value, weight, sum);
#endif
}

using Wide = Floats<PINNACE_LANES>;
#if PINNACE_LANES > 4
using HalfWidth = Floats<PINNACE_LANES / 2>;
#endif

}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
