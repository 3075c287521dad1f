// A row of a max pool of fp16 values for ARMv8.2.
#include "backends/cpu/pool/max_pool_row.h"
#include "backends/cpu/simd/f16_neon.h"

namespace pinnace::cpu {
namespace neon_dotprod {
namespace {

/// `count` channels, 1 to 8, from c on, of output column o.
void max_pool_lanes(const MaxPoolRow<uint16_t>& p, const uint16_t* x, int64_t columns, uint16_t* y, int64_t count) {
  Halves most = vreinterpretq_f16_u16(vdupq_n_u16(0xfc00));  // -inf
  for (int64_t ky = 0; ky < p.rows; ++ky, x += p.tap_row) {
    for (int64_t kx = 0; kx < columns; ++kx) {
      const uint16_t* tap = x + kx * p.dilation_x * p.pitch;
      most = vmaxq_f16(most, count == kLanes ? load(tap) : load_part(tap, count));
    }
  }
  count == kLanes ? store(y, most) : store_part(y, most, count);
}

void max_pool_row(const MaxPoolRow<uint16_t>& p) {
  for (int64_t o = 0; o < p.out_w; ++o) {
    const int64_t start = o * p.stride_x - p.before_x;
    const int64_t first = start < 0 ? (-start + p.dilation_x - 1) / p.dilation_x : 0;
    const int64_t last = start < p.in_w ? (p.in_w - 1 - start) / p.dilation_x + 1 : 0;
    const int64_t columns = (last < p.kernel_w ? last : p.kernel_w) - first;
    const uint16_t* x = p.x + (start + first * p.dilation_x) * p.pitch;
    uint16_t* y = p.y + o * p.y_pitch;
    for (int64_t c = 0; c < p.channels; c += kLanes) {
      max_pool_lanes(p, x + c, columns, y + c, p.channels - c < kLanes ? p.channels - c : kLanes);
    }
  }
}

}  // namespace
}  // namespace neon_dotprod

void max_pool_row_f16_neon_dotprod(const MaxPoolRow<uint16_t>& p) {
  neon_dotprod::max_pool_row(p);
}

}  // namespace pinnace::cpu
