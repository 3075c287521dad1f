// Look-ups for the baseline. ARMv8.0 looks bytes up in 64 at a time; SSE2 has nothing of the kind.
#include "backends/cpu/quantize/lookup_i8.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace pinnace::cpu {

void lookup_i8_generic(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n) {
  int64_t i = 0;
#if defined(__aarch64__)
  const uint8x16x4_t a = vld1q_u8_x4(table), b = vld1q_u8_x4(table + 64);
  const uint8x16x4_t c = vld1q_u8_x4(table + 128), d = vld1q_u8_x4(table + 192);
  const uint8x16_t next = vdupq_n_u8(64);
  for (; i + 16 <= n; i += 16) {
    // Indices beyond a part's 64 entries leave what another part found.
    uint8x16_t at = vld1q_u8(x + i);
    uint8x16_t found = vqtbl4q_u8(a, at);
    at = vsubq_u8(at, next);
    found = vqtbx4q_u8(found, b, at);
    at = vsubq_u8(at, next);
    found = vqtbx4q_u8(found, c, at);
    at = vsubq_u8(at, next);
    vst1q_u8(y + i, vqtbx4q_u8(found, d, at));
  }
#else
  for (; i + 4 <= n; i += 4) {
    const uint8_t a = table[x[i]], b = table[x[i + 1]], c = table[x[i + 2]], d = table[x[i + 3]];
    y[i] = a, y[i + 1] = b, y[i + 2] = c, y[i + 3] = d;
  }
#endif
  for (; i < n; ++i) y[i] = table[x[i]];
}

}  // namespace pinnace::cpu
