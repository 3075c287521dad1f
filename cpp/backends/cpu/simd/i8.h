// Registers of 8-bit elements and int32 sums of one instruction set (isa.h).
//
// The dot product of four unsigned and four signed bytes must not saturate: vpdpbusd where there is VNNI
// (PINNACE_VNNI), else two vpmaddwd on halves widened to 16 bits (vpmaddubsw would saturate at 255 * 127 * 2). ARM64
// has USDOT (PINNACE_USDOT), or SDOT of signed bytes alone (PINNACE_SDOT): activations are then 128 less than they are,
// for which packed biases make up.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/simd/isa.h"
#include "backends/cpu/simd/stored_i8.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define PINNACE_UNROLL _Pragma("GCC unroll 64")

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

template <int LANES>
struct IntsOf;

#if defined(__x86_64__)
template <>
struct IntsOf<4> {
  using I = __m128i;
  using F = __m128;
  static inline I load(const void* p) { return _mm_loadu_si128(static_cast<const I*>(p)); }
  static inline void store(void* p, I v) { _mm_storeu_si128(static_cast<I*>(p), v); }
  static inline F load_floats(const float* p) { return _mm_loadu_ps(p); }
  static inline I all(int32_t v) { return _mm_set1_epi32(v); }
  static inline I all_shorts(int32_t v) { return _mm_set1_epi16(static_cast<int16_t>(v)); }
  static inline I all_bytes(uint8_t v) { return _mm_set1_epi8(static_cast<char>(v)); }
  static inline F all(float v) { return _mm_set1_ps(v); }
  static inline F to_floats(I v) { return _mm_cvtepi32_ps(v); }
  static inline I to_ints(F v) { return _mm_cvtps_epi32(v); }
  static inline F smaller(F a, F b) { return _mm_min_ps(a, b); }
  static inline F larger(F a, F b) { return _mm_max_ps(a, b); }
  static inline F not_nan(F v) { return _mm_and_ps(v, _mm_cmpord_ps(v, v)); }
  static inline I widen(const uint8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    const I zero = _mm_setzero_si128();
    return _mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(four), zero), zero);
  }
  static inline I flip(I v, I bits) { return _mm_xor_si128(v, bits); }
  static inline I multiply_pairs(I a, I b) { return _mm_madd_epi16(a, b); }
  static inline I add(I a, I b) { return _mm_add_epi32(a, b); }
  /// a - b * c modulo 2^32.
  static inline I less_product(I a, I b, I c) {
    using U = uint32_t __attribute__((vector_size(16)));
    return (I)((U)a - (U)b * (U)c);
  }
  template <int BITS>
  static inline I shift(I a) {
    return _mm_slli_epi32(a, BITS);
  }
  static inline I even_unsigned(I v) { return _mm_and_si128(v, _mm_set1_epi16(255)); }
  static inline I odd_unsigned(I v) { return _mm_srli_epi16(v, 8); }
  static inline I even_signed(I v) { return _mm_srai_epi16(_mm_slli_epi16(v, 8), 8); }
  static inline I odd_signed(I v) { return _mm_srai_epi16(v, 8); }
  static inline I pack_shorts(I a, I b) { return _mm_packs_epi32(a, b); }
  static inline I add_shorts(I a, I b) { return _mm_adds_epi16(a, b); }
  static inline I pack_bytes(I a, I b) { return _mm_packus_epi16(a, b); }
  static inline I at_least_bytes(I a, I b) { return _mm_max_epu8(a, b); }
  static inline I at_most_bytes(I a, I b) { return _mm_min_epu8(a, b); }
  static inline I low_bytes(I a, I b) { return _mm_unpacklo_epi8(a, b); }
  static inline I high_bytes(I a, I b) { return _mm_unpackhi_epi8(a, b); }
  static inline I low_shorts(I a, I b) { return _mm_unpacklo_epi16(a, b); }
  static inline I high_shorts(I a, I b) { return _mm_unpackhi_epi16(a, b); }
  /// The bytes of four rows, four of each in every 128-bit lane as to_bytes leaves them, as rows; `rows` are wanted.
  static inline void store_rows(I v, uint8_t* to, ptrdiff_t row, int rows) {
    int32_t four[4];
    _mm_storeu_si128(reinterpret_cast<I*>(four), v);
    for (int i = 0; i < rows; ++i) __builtin_memcpy(to + i * row, four + i, 4);
  }
};
#elif defined(__aarch64__)
template <>
struct IntsOf<4> {
  using I = int32x4_t;
  using F = float32x4_t;
  static inline I load(const void* p) { return vreinterpretq_s32_u8(vld1q_u8(static_cast<const uint8_t*>(p))); }
  static inline void store(void* p, I v) { vst1q_u8(static_cast<uint8_t*>(p), bytes(v)); }
  static inline F load_floats(const float* p) { return vld1q_f32(p); }
  static inline I all(int32_t v) { return vdupq_n_s32(v); }
  static inline I all_shorts(int32_t v) { return vreinterpretq_s32_s16(vdupq_n_s16(static_cast<int16_t>(v))); }
  static inline I all_bytes(uint8_t v) { return vreinterpretq_s32_u8(vdupq_n_u8(v)); }
  static inline F all(float v) { return vdupq_n_f32(v); }
  static inline F to_floats(I v) { return vcvtq_f32_s32(v); }
  static inline I to_ints(F v) { return vcvtnq_s32_f32(v); }
  static inline F smaller(F a, F b) { return vminnmq_f32(a, b); }
  static inline F larger(F a, F b) { return vmaxnmq_f32(a, b); }
  static inline F not_nan(F v) { return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(v), vceqq_f32(v, v))); }
  static inline I widen(const uint8_t* p) {
    uint32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(four)))));
  }
  static inline I flip(I v, I bits) { return veorq_s32(v, bits); }
  static inline I multiply_pairs(I a, I b) {
    return vpaddq_s32(vmull_s16(vget_low_s16(shorts(a)), vget_low_s16(shorts(b))),
                      vmull_high_s16(shorts(a), shorts(b)));
  }
  static inline I add(I a, I b) { return vaddq_s32(a, b); }
  template <int BITS>
  static inline I shift(I a) {
    return vshlq_n_s32(a, BITS);
  }
  static inline I even_unsigned(I v) { return vandq_s32(v, vdupq_n_s32(0x00ff00ff)); }
  static inline I odd_unsigned(I v) { return vreinterpretq_s32_u16(vshrq_n_u16(vreinterpretq_u16_s32(v), 8)); }
  static inline I even_signed(I v) { return vreinterpretq_s32_s16(vshrq_n_s16(vshlq_n_s16(shorts(v), 8), 8)); }
  static inline I odd_signed(I v) { return vreinterpretq_s32_s16(vshrq_n_s16(shorts(v), 8)); }
  static inline I pack_shorts(I a, I b) { return vreinterpretq_s32_s16(vqmovn_high_s32(vqmovn_s32(a), b)); }
  static inline I add_shorts(I a, I b) { return vreinterpretq_s32_s16(vqaddq_s16(shorts(a), shorts(b))); }
  static inline I pack_bytes(I a, I b) { return of_bytes(vqmovun_high_s16(vqmovun_s16(shorts(a)), shorts(b))); }
  static inline I at_least_bytes(I a, I b) { return of_bytes(vmaxq_u8(bytes(a), bytes(b))); }
  static inline I at_most_bytes(I a, I b) { return of_bytes(vminq_u8(bytes(a), bytes(b))); }
  static inline I low_bytes(I a, I b) { return of_bytes(vzip1q_u8(bytes(a), bytes(b))); }
  static inline I high_bytes(I a, I b) { return of_bytes(vzip2q_u8(bytes(a), bytes(b))); }
  static inline I low_shorts(I a, I b) { return vreinterpretq_s32_s16(vzip1q_s16(shorts(a), shorts(b))); }
  static inline I high_shorts(I a, I b) { return vreinterpretq_s32_s16(vzip2q_s16(shorts(a), shorts(b))); }
  static inline void store_rows(I v, uint8_t* to, ptrdiff_t row, int rows) {
    if (row == 4 && rows == 4) return store(to, v);
    for (int i = 0; i < rows; ++i) __builtin_memcpy(to + i * row, reinterpret_cast<const char*>(&v) + 4 * i, 4);
  }

  static inline uint8x16_t bytes(I v) { return vreinterpretq_u8_s32(v); }
  static inline I of_bytes(uint8x16_t v) { return vreinterpretq_s32_u8(v); }
  static inline int16x8_t shorts(I v) { return vreinterpretq_s16_s32(v); }
};
#else
// Any other processor: the compiler's vectors of 16 bytes.
template <>
struct IntsOf<4> {
  using I = int32_t __attribute__((vector_size(16)));
  using F = float __attribute__((vector_size(16)));
  using S = int16_t __attribute__((vector_size(16)));
  using B = uint8_t __attribute__((vector_size(16)));
  static inline I load(const void* p) {
    I v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static inline void store(void* p, I v) { __builtin_memcpy(p, &v, sizeof v); }
  static inline F load_floats(const float* p) {
    F v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static inline I all(int32_t v) { return I{v, v, v, v}; }
  static inline I all_shorts(int32_t v) {
    const auto s = static_cast<int16_t>(v);
    return (I)S{s, s, s, s, s, s, s, s};
  }
  static inline I all_bytes(uint8_t v) { return all(static_cast<int32_t>(v * 0x01010101u)); }
  static inline F all(float v) { return F{v, v, v, v}; }
  static inline F to_floats(I v) { return __builtin_convertvector(v, F); }
  static inline I to_ints(F v) {  // half to even, out of range the least integer, as x86 has it
    I r;
    for (int i = 0; i < 4; ++i) {
      r[i] = v[i] >= -0x1p31f && v[i] < 0x1p31f ? static_cast<int32_t>(__builtin_nearbyintf(v[i])) : INT32_MIN;
    }
    return r;
  }
  static inline F smaller(F a, F b) {
    const I first = a < b;
    return (F)(((I)a & first) | ((I)b & ~first));
  }
  static inline F larger(F a, F b) {
    const I first = a > b;
    return (F)(((I)a & first) | ((I)b & ~first));
  }
  static inline F not_nan(F v) { return (F)((I)v & (I)(v == v)); }
  static inline I widen(const uint8_t* p) { return I{p[0], p[1], p[2], p[3]}; }
  static inline I flip(I v, I bits) { return v ^ bits; }
  static inline I multiply_pairs(I a, I b) { return ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16); }
  static inline I add(I a, I b) {
    using U = uint32_t __attribute__((vector_size(16)));
    return (I)((U)a + (U)b);
  }
  /// a - b * c modulo 2^32.
  static inline I less_product(I a, I b, I c) {
    using U = uint32_t __attribute__((vector_size(16)));
    return (I)((U)a - (U)b * (U)c);
  }
  template <int BITS>
  static inline I shift(I a) {
    return a << BITS;
  }
  static inline I even_unsigned(I v) { return v & 0x00ff00ff; }
  static inline I odd_unsigned(I v) { return (v >> 8) & 0x00ff00ff; }
  static inline I even_signed(I v) { return (I)((S)((S)v << 8) >> 8); }
  static inline I odd_signed(I v) { return (I)((S)v >> 8); }
  static inline I pack_shorts(I a, I b) {
    S r;
    for (int i = 0; i < 8; ++i) {
      const int32_t v = i < 4 ? a[i] : b[i - 4];
      r[i] = static_cast<int16_t>(v < -32768 ? -32768 : v > 32767 ? 32767 : v);
    }
    return (I)r;
  }
  static inline I add_shorts(I a, I b) {
    S r;
    for (int i = 0; i < 8; ++i) {
      const int32_t v = ((S)a)[i] + ((S)b)[i];
      r[i] = static_cast<int16_t>(v < -32768 ? -32768 : v > 32767 ? 32767 : v);
    }
    return (I)r;
  }
  static inline I pack_bytes(I a, I b) {
    B r;
    for (int i = 0; i < 16; ++i) {
      const int32_t v = i < 8 ? ((S)a)[i] : ((S)b)[i - 8];
      r[i] = static_cast<uint8_t>(v < 0 ? 0 : v > 255 ? 255 : v);
    }
    return (I)r;
  }
  static inline I at_least_bytes(I a, I b) { return (I)((B)a > (B)b ? (B)a : (B)b); }
  static inline I at_most_bytes(I a, I b) { return (I)((B)a < (B)b ? (B)a : (B)b); }
  static inline I low_bytes(I a, I b) {
    return (I)__builtin_shufflevector((B)a, (B)b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  }
  static inline I high_bytes(I a, I b) {
    return (I)__builtin_shufflevector((B)a, (B)b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
  static inline I low_shorts(I a, I b) { return (I)__builtin_shufflevector((S)a, (S)b, 0, 8, 1, 9, 2, 10, 3, 11); }
  static inline I high_shorts(I a, I b) { return (I)__builtin_shufflevector((S)a, (S)b, 4, 12, 5, 13, 6, 14, 7, 15); }
  static inline void store_rows(I v, uint8_t* to, ptrdiff_t row, int rows) {
    for (int i = 0; i < rows; ++i) __builtin_memcpy(to + i * row, reinterpret_cast<const char*>(&v) + 4 * i, 4);
  }
};
#endif

#if PINNACE_LANES >= 8
template <>
struct IntsOf<8> {
  using I = __m256i;
  using F = __m256;
  static inline I load(const void* p) { return _mm256_loadu_si256(static_cast<const I*>(p)); }
  static inline void store(void* p, I v) { _mm256_storeu_si256(static_cast<I*>(p), v); }
  static inline F load_floats(const float* p) { return _mm256_loadu_ps(p); }
  static inline I all(int32_t v) { return _mm256_set1_epi32(v); }
  static inline I all_shorts(int32_t v) { return _mm256_set1_epi16(static_cast<int16_t>(v)); }
  static inline I all_bytes(uint8_t v) { return _mm256_set1_epi8(static_cast<char>(v)); }
  static inline F all(float v) { return _mm256_set1_ps(v); }
  static inline F to_floats(I v) { return _mm256_cvtepi32_ps(v); }
  static inline I to_ints(F v) { return _mm256_cvtps_epi32(v); }
  static inline F smaller(F a, F b) { return _mm256_min_ps(a, b); }
  static inline F larger(F a, F b) { return _mm256_max_ps(a, b); }
  static inline F not_nan(F v) { return _mm256_and_ps(v, _mm256_cmp_ps(v, v, _CMP_ORD_Q)); }
  static inline F less_product(F a, F b, F c) { return _mm256_fnmadd_ps(a, b, c); }
  static inline F plus_product(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static inline I widen(const uint8_t* p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static inline I flip(I v, I bits) { return _mm256_xor_si256(v, bits); }
  static inline I multiply_pairs(I a, I b) { return _mm256_madd_epi16(a, b); }
  static inline I add(I a, I b) { return _mm256_add_epi32(a, b); }
  /// a - b * c modulo 2^32.
  static inline I less_product(I a, I b, I c) {
    using U = uint32_t __attribute__((vector_size(32)));
    return (I)((U)a - (U)b * (U)c);
  }
  template <int BITS>
  static inline I shift(I a) {
    return _mm256_slli_epi32(a, BITS);
  }
  static inline I even_unsigned(I v) { return _mm256_and_si256(v, _mm256_set1_epi16(255)); }
  static inline I odd_unsigned(I v) { return _mm256_srli_epi16(v, 8); }
  static inline I even_signed(I v) { return _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8); }
  static inline I odd_signed(I v) { return _mm256_srai_epi16(v, 8); }
  static inline I pack_shorts(I a, I b) { return _mm256_packs_epi32(a, b); }
  static inline I add_shorts(I a, I b) { return _mm256_adds_epi16(a, b); }
  static inline I pack_bytes(I a, I b) { return _mm256_packus_epi16(a, b); }
  static inline I at_least_bytes(I a, I b) { return _mm256_max_epu8(a, b); }
  static inline I at_most_bytes(I a, I b) { return _mm256_min_epu8(a, b); }
  static inline I low_bytes(I a, I b) { return _mm256_unpacklo_epi8(a, b); }
  static inline I high_bytes(I a, I b) { return _mm256_unpackhi_epi8(a, b); }
  static inline I low_shorts(I a, I b) { return _mm256_unpacklo_epi16(a, b); }
  static inline I high_shorts(I a, I b) { return _mm256_unpackhi_epi16(a, b); }
  static inline void store_rows(I v, uint8_t* to, ptrdiff_t row, int rows) {
    v = _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    const __m128i low = _mm256_castsi256_si128(v), high = _mm256_extracti128_si256(v, 1);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), low);
    if (rows > 1) _mm_storel_epi64(reinterpret_cast<__m128i*>(to + row), _mm_unpackhi_epi64(low, low));
    if (rows > 2) _mm_storel_epi64(reinterpret_cast<__m128i*>(to + 2 * row), high);
    if (rows > 3) _mm_storel_epi64(reinterpret_cast<__m128i*>(to + 3 * row), _mm_unpackhi_epi64(high, high));
  }
};
#endif

#if PINNACE_LANES >= 16
template <>
struct IntsOf<16> {
  using I = __m512i;
  using F = __m512;
  static inline I load(const void* p) { return _mm512_loadu_si512(p); }
  static inline void store(void* p, I v) { _mm512_storeu_si512(p, v); }
  static inline F load_floats(const float* p) { return _mm512_loadu_ps(p); }
  static inline I all(int32_t v) { return _mm512_set1_epi32(v); }
  static inline I all_shorts(int32_t v) { return _mm512_set1_epi16(static_cast<int16_t>(v)); }
  static inline I all_bytes(uint8_t v) { return _mm512_set1_epi8(static_cast<char>(v)); }
  static inline F all(float v) { return _mm512_set1_ps(v); }
  static inline F to_floats(I v) { return _mm512_cvtepi32_ps(v); }
  static inline I to_ints(F v) { return _mm512_cvtps_epi32(v); }
  static inline F smaller(F a, F b) { return _mm512_min_ps(a, b); }
  static inline F larger(F a, F b) { return _mm512_max_ps(a, b); }
  static inline F not_nan(F v) { return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, v, _CMP_ORD_Q), v); }
  static inline F less_product(F a, F b, F c) { return _mm512_fnmadd_ps(a, b, c); }
  static inline F plus_product(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static inline I widen(const uint8_t* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static inline I flip(I v, I bits) { return _mm512_xor_si512(v, bits); }
  static inline I add(I a, I b) { return _mm512_add_epi32(a, b); }
  /// a - b * c modulo 2^32.
  static inline I less_product(I a, I b, I c) {
    using U = uint32_t __attribute__((vector_size(64)));
    return (I)((U)a - (U)b * (U)c);
  }
  template <int BITS>
  static inline I shift(I a) {
    return _mm512_slli_epi32(a, BITS);
  }
  static inline I pack_shorts(I a, I b) { return _mm512_packs_epi32(a, b); }
  static inline I add_shorts(I a, I b) { return _mm512_adds_epi16(a, b); }
  static inline I pack_bytes(I a, I b) { return _mm512_packus_epi16(a, b); }
  static inline I at_least_bytes(I a, I b) { return _mm512_max_epu8(a, b); }
  static inline I at_most_bytes(I a, I b) { return _mm512_min_epu8(a, b); }
  static inline I low_bytes(I a, I b) { return _mm512_unpacklo_epi8(a, b); }
  static inline I high_bytes(I a, I b) { return _mm512_unpackhi_epi8(a, b); }
  static inline I low_shorts(I a, I b) { return _mm512_unpacklo_epi16(a, b); }
  static inline I high_shorts(I a, I b) { return _mm512_unpackhi_epi16(a, b); }
  static inline void store_rows(I v, uint8_t* to, ptrdiff_t row, int rows) {
    v = _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), v);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_castsi512_si128(v));
    if (rows > 1) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + row), _mm512_extracti32x4_epi32(v, 1));
    if (rows > 2) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * row), _mm512_extracti32x4_epi32(v, 2));
    if (rows > 3) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 3 * row), _mm512_extracti32x4_epi32(v, 3));
  }
  static inline void store_row_pairs(I a, I b, uint8_t* to, ptrdiff_t row, int rows) {
    const auto two = [&](I order, uint8_t* at, int left) {
      const I v = _mm512_permutex2var_epi32(a, order, b);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), _mm512_castsi512_si256(v));
      if (left > 1) _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + row), _mm512_extracti64x4_epi64(v, 1));
    };
    two(_mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29), to, rows);
    if (rows < 3) return;
    two(_mm512_setr_epi32(2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31), to + 2 * row, rows - 2);
  }
};
#endif

#if PINNACE_SDOT
constexpr int32_t kActivationOffset = 128;
#else
constexpr int32_t kActivationOffset = 0;
#endif

/// LANES sums of products of quads: four unsigned activations and four signed weights in each int32.
template <int LANES>
struct Quads : IntsOf<LANES> {
  using Base = IntsOf<LANES>;
  using typename Base::F;
  using typename Base::I;
  static constexpr int kLanes = LANES;

#if PINNACE_VNNI
  using Acts = I;
  using Weights = I;
  static inline Acts acts(I v) { return v; }
  static inline Weights weights(I v) { return v; }
  /// sum + acts . weights. Written as asm: GCC 12 spills accumulators of the intrinsic, since it takes the destination
  /// for another register.
  static inline I dot(I sum, Acts a, Weights w) {
#if PINNACE_LANES == 8
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(w));  // AVX-512's encoding is another
#else
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(w));
#endif
    return sum;
  }
#elif PINNACE_SDOT || PINNACE_USDOT
  using Acts = I;
  using Weights = I;
  static inline Acts acts(I v) { return v; }
  static inline Weights weights(I v) { return v; }
  static inline I dot(I sum, Acts a, Weights w) {
#if PINNACE_USDOT
    return vusdotq_s32(sum, vreinterpretq_u8_s32(a), vreinterpretq_s8_s32(w));
#else
    return vdotq_s32(sum, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(w));
#endif
  }
#else
  struct Acts {
    I even, odd;
  };
  using Weights = Acts;
  static inline Acts acts(I v) { return {Base::even_unsigned(v), Base::odd_unsigned(v)}; }
  static inline Weights weights(I v) { return {Base::even_signed(v), Base::odd_signed(v)}; }
  static inline I dot(I sum, Acts a, Weights w) {
    return Base::add(sum, Base::add(Base::multiply_pairs(a.even, w.even), Base::multiply_pairs(a.odd, w.odd)));
  }
#endif
  /// Activations as the dot product takes them.
  static inline I ready(I v) {
#if PINNACE_SDOT
    return Base::flip(v, Base::all_bytes(0x80));
#else
    return v;
#endif
  }
  static inline Acts repeat(const uint8_t* quad) {
    int32_t v;
    __builtin_memcpy(&v, quad, sizeof v);
    return acts(Base::all(v));
  }
  /// round_half_even(float32(sum) * m), where that is below 2^31.
  static inline I requantise(I sum, F m) { return Base::to_ints(Base::to_floats(sum) * m); }
  /// The bytes of four rows, as to_bytes leaves them, of NV neighbouring registers of columns; `rows`, 1 to 4, are
  /// wanted.
  template <int NV>
  static inline void store_columns(const I (&v)[NV], uint8_t* to, ptrdiff_t row, int rows) {
#if PINNACE_LANES >= 16
    if constexpr (LANES == 16 && NV == 2) return Base::store_row_pairs(v[0], v[1], to, row, rows);
#endif
    PINNACE_UNROLL for (int j = 0; j < NV; ++j) Base::store_rows(v[j], to + j * LANES, row, rows);
  }
  /// Whole numbers plus zero as bytes, within [0, 255]: per 128-bit lane four of a, b, c, d.
  static inline I to_bytes(I a, I b, I c, I d, I zero_shorts) {
    const I ab = Base::add_shorts(Base::pack_shorts(a, b), zero_shorts);
    const I cd = Base::add_shorts(Base::pack_shorts(c, d), zero_shorts);
    return Base::pack_bytes(ab, cd);
  }
};

/// min(max(round_half_even(float32(sum) * m) + zero, low), high) of any sum and multiplier.
inline uint8_t requantise_one(int32_t sum, float m, const StoreI8& store) {
  const float least = static_cast<float>(store.low - store.zero), most = static_cast<float>(store.high - store.zero);
  float real = static_cast<float>(sum) * m;
  real = real < least ? least : real > most ? most : real;
  return static_cast<uint8_t>(static_cast<int32_t>(__builtin_nearbyintf(real)) + store.zero);
}

}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
