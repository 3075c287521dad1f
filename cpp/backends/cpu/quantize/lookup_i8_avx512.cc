// Look-ups for AVX-512BW, which finds one of 64 pairs of bytes: even and odd bytes by themselves.
#include "backends/cpu/quantize/lookup_i8.h"

#include <immintrin.h>

namespace pinnace::cpu {

void lookup_i8_avx512(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n) {
  const __m512i a = _mm512_loadu_si512(table), b = _mm512_loadu_si512(table + 64);
  const __m512i c = _mm512_loadu_si512(table + 128), d = _mm512_loadu_si512(table + 192);
  const __m512i eight = _mm512_set1_epi16(8), top = _mm512_set1_epi16(0x80);
  // The pair of entry i is i / 2, of whose 7 bits the instruction looks at 6.
  const auto pair = [&](__m512i at, __mmask32 second) __attribute__((always_inline)) {
    return _mm512_mask_blend_epi16(second, _mm512_permutex2var_epi16(a, at, b), _mm512_permutex2var_epi16(c, at, d));
  };
  const auto find = [&](__m512i v) __attribute__((always_inline)) {
    const __m512i even = pair(_mm512_srli_epi16(v, 1), _mm512_test_epi16_mask(v, top));
    const __m512i odd = pair(_mm512_srli_epi16(v, 9), _mm512_movepi16_mask(v));
    // An even byte's entry goes down from the upper half of its pair, an odd one's up from the lower.
    const __m512i low = _mm512_srlv_epi16(even, _mm512_and_si512(_mm512_slli_epi16(v, 3), eight));
    const __m512i high = _mm512_sllv_epi16(odd, _mm512_andnot_si512(_mm512_srli_epi16(v, 5), eight));
    return _mm512_mask_blend_epi8(0xaaaaaaaaaaaaaaaa, low, high);
  };
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) _mm512_storeu_si512(y + i, find(_mm512_loadu_si512(x + i)));
  if (i < n) {
    const __mmask64 left = (uint64_t{1} << (n - i)) - 1;
    _mm512_mask_storeu_epi8(y + i, left, find(_mm512_maskz_loadu_epi8(left, x + i)));
  }
}

}  // namespace pinnace::cpu
