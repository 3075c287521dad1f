// Look-ups for AVX2, which finds a byte among 16: in each of the table's 16 parts by an index's lower bits, then by
// halves the one that its upper bits name.
#include "backends/cpu/quantize/lookup_i8.h"

#include <immintrin.h>

namespace pinnace::cpu {

void lookup_i8_avx2(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n) {
  const __m256i lower = _mm256_set1_epi8(15);
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    const __m256i at = _mm256_and_si256(v, lower);
    const auto part = [&](int k) __attribute__((always_inline)) {
      const __m128i entries = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * k));
      return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), at);
    };
    // Blending goes by the top bit of each byte: bits 4 to 7 in turn.
    const __m256i bit[] = {_mm256_slli_epi16(v, 3), _mm256_slli_epi16(v, 2), _mm256_slli_epi16(v, 1), v};
    const auto of_two = [&](int k)
                            __attribute__((always_inline)) { return _mm256_blendv_epi8(part(k), part(k + 1), bit[0]); };
    const auto of_four = [&](int k) __attribute__((always_inline)) {
      return _mm256_blendv_epi8(of_two(k), of_two(k + 2), bit[1]);
    };
    const auto of_eight = [&](int k) __attribute__((always_inline)) {
      return _mm256_blendv_epi8(of_four(k), of_four(k + 4), bit[2]);
    };
    const __m256i found = _mm256_blendv_epi8(of_eight(0), of_eight(8), bit[3]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), found);
  }
  lookup_i8_generic(table, x + i, y + i, n - i);
}

}  // namespace pinnace::cpu
