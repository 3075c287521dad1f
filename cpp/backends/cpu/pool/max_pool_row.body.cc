// The loop of max_pool_row.h.
#include "backends/cpu/pool/max_pool_row.h"
#include "backends/cpu/simd/f32_channels.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

/// Channels [c, c + V::kLanes) of output column o.
template <class V>
inline void max_pool_lanes(const MaxPoolRow<float>& p, const float* x, int64_t columns, float* y) {
  typename V::T most = V::all(-__builtin_inff());
  for (int64_t ky = 0; ky < p.rows; ++ky, x += p.tap_row) {
    for (int64_t kx = 0; kx < columns; ++kx) {
      const typename V::T v = V::load(x + kx * p.dilation_x * p.pitch);
      most = V::select((v > most) | (v != v), v, most);
    }
  }
  V::store(y, most);
}

void max_pool_row(const MaxPoolRow<float>& p) {
  for (int64_t o = 0; o < p.out_w; ++o) {
    const int64_t start = o * p.stride_x - p.before_x;
    const int64_t first = start < 0 ? (-start + p.dilation_x - 1) / p.dilation_x : 0;
    const int64_t last = start < p.in_w ? (p.in_w - 1 - start) / p.dilation_x + 1 : 0;
    const int64_t columns = (last < p.kernel_w ? last : p.kernel_w) - first;
    const float* x = p.x + (start + first * p.dilation_x) * p.pitch;
    float* y = p.y + o * p.y_pitch;
    int64_t c = 0;
    for (; c + Wide::kLanes <= p.channels; c += Wide::kLanes) max_pool_lanes<Wide>(p, x + c, columns, y + c);
    for (; c + Lanes::kLanes <= p.channels; c += Lanes::kLanes) max_pool_lanes<Lanes>(p, x + c, columns, y + c);
    for (; c < p.channels; ++c) {
      float most = -__builtin_inff();
      for (int64_t ky = 0; ky < p.rows; ++ky) {
        for (int64_t kx = 0; kx < columns; ++kx) {
          const float v = x[c + ky * p.tap_row + kx * p.dilation_x * p.pitch];
          most = v > most || v != v ? v : most;
        }
      }
      y[c] = most;
    }
  }
}

}  // namespace
}  // namespace PINNACE_ISA

void PINNACE_FOR_ISA(max_pool_row_f32)(const MaxPoolRow<float>& p) {
  PINNACE_ISA::max_pool_row(p);
}

}  // namespace pinnace::cpu
