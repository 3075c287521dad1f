// Depthwise convolutions three taps wide, in quads, for ARM64, in place of the general tile of image_i8_body.h, which
// includes this. With 32 registers 2 x 4 outputs share each column that they read, and are narrowed to 16 bits as soon
// as a register of channels is done: sums of four registers do not fit beside each other.
#pragma once

#include <arm_neon.h>

namespace pinnace {
namespace PINNACE_LEVEL {
namespace {

/// ROWS x COLUMNS outputs of 16 channels, from unpacked columns (one group) at x on.
template <class V, int ROWS, int COLUMNS, int STRIDE>
__attribute__((noinline)) void three_taps(const DepthwiseRowsI8& d, const std::byte* weights, const uint8_t* x,
                                          uint8_t* y) {
  constexpr int kBytes = 4 * V::kLanes, kColumn = 4 * kBytes, kTaps = 3;
  const auto* quads = reinterpret_cast<const uint8_t*>(weights) + 8 * kBytes;
  const auto* multipliers = reinterpret_cast<const float*>(weights) + 4 * V::kLanes;
  const float32x4_t most = vdupq_n_f32(static_cast<float>(d.store.high - d.store.zero));
  int16x8_t halves[2][ROWS][COLUMNS];
  PINNACE_UNROLL for (int v = 0; v < 4; ++v) {
    typename V::I sum[ROWS][COLUMNS];
    const std::byte* bias = weights + v * kBytes;
    typename V::Weights weight[ROWS][kTaps];
    PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
      PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) {
        sum[r][i] = V::load(bias);
        asm volatile("" : "+r"(bias));  // loaded again, not copied from a register that sums need
      }
      PINNACE_UNROLL for (int k = 0; k < kTaps; ++k) {
        weight[r][k] = V::weights(V::load(quads + ((r * kTaps + k) * 4 + v) * kBytes));
      }
    }
    PINNACE_UNROLL for (int c = 0; c < (COLUMNS - 1) * STRIDE + kTaps; ++c) {
      const auto acts = V::acts(V::load(x + c * kColumn + v * kBytes));
      PINNACE_UNROLL for (int k = 0; k < kTaps; ++k) {
        const int at = c - k;
        if (at < 0 || at % STRIDE != 0 || at / STRIDE >= COLUMNS) continue;
        PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
          sum[r][at / STRIDE] = V::dot(sum[r][at / STRIDE], acts, weight[r][k]);
        }
      }
    }
    const float32x4_t m = V::load_floats(multipliers + v * V::kLanes);
    PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
      PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) {
        const auto whole = V::to_ints(V::smaller(V::to_floats(sum[r][i]) * m, most));
        auto& half = halves[v / 2][r][i];
        half = v % 2 ? vqmovn_high_s32(vget_low_s16(half), whole) : vcombine_s16(vqmovn_s32(whole), vdup_n_s16(0));
      }
    }
    asm volatile("");  // nothing of the next register is moved up: sums would spill
  }
  const int16x8_t zero = vdupq_n_s16(static_cast<int16_t>(d.store.zero));
  const uint8x16_t low = vdupq_n_u8(d.store.low);
  PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
    uint8_t* to = y + r * d.y_row;
    PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i, to += d.y_pitch) {
      const uint8x8_t first = vqmovun_s16(vqaddq_s16(halves[0][r][i], zero));
      vst1q_u8(to, vmaxq_u8(vqmovun_high_s16(first, vqaddq_s16(halves[1][r][i], zero)), low));
    }
  }
}

/// `count` outputs of one or two rows, from unpacked columns.
template <class V, int ROWS, int STRIDE>
void three_taps_wide(const DepthwiseRowsI8& d, const std::byte* weights, const uint8_t* columns, int64_t count,
                     uint8_t* y) {
  constexpr ptrdiff_t kColumn = 16 * V::kLanes;
  for (; count >= 4; count -= 4, columns += 4 * STRIDE * kColumn, y += 4 * d.y_pitch) {
    three_taps<V, ROWS, 4, STRIDE>(d, weights, columns, y);
  }
  for (; count > 0; --count, columns += STRIDE * kColumn, y += d.y_pitch) {
    three_taps<V, ROWS, 1, STRIDE>(d, weights, columns, y);
  }
}

}  // namespace
}  // namespace PINNACE_LEVEL
}  // namespace pinnace
