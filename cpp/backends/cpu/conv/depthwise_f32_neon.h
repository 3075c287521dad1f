// Depthwise convolutions of ARM64, in place of those in depthwise_f32.body.cc, which includes this: 8 channels at a
// time in two registers, since one instruction loads or stores two and steps to the next pixel. With 32 registers 2 x 4
// outputs hold 16 sums, the weights of two rows of taps 12, and a pixel 2.
#pragma once

#include <arm_neon.h>

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

/// Channels that weights are packed by, and that a tile has.
constexpr int kNeonChannels = 8;

/// 8 floats from `at`, which then goes on by `step` bytes.
__attribute__((always_inline)) inline float32x4x2_t neon_load(const char*& at, ptrdiff_t step) {
#if defined(__clang__)
  const float32x4x2_t value = vld1q_f32_x2(reinterpret_cast<const float*>(at));
  at += step;
#else
  float32x4x2_t value;
  asm("ld1 {%S0.4s, %T0.4s}, [%1], %2"
      : "=w"(value), "+r"(at)
      : "r"(step), "m"(*reinterpret_cast<const float(*)[8]>(at)));
#endif
  return value;
}
/// sum += a * b where sum lies: of vfmaq_f32 GCC 12 makes copies.
__attribute__((always_inline)) inline void neon_multiply_add(float32x4_t& sum, float32x4_t a, float32x4_t b) {
  asm("fmla %0.4s, %1.4s, %2.4s" : "+w"(sum) : "w"(a), "w"(b));
}

/// ROWS x COLUMNS outputs of 8 channels, the first one's first tap at x. Each input pixel is loaded once, and goes into
/// every output that it is part of. Two rows have their kernel's height known: it is KW.
template <int KW, int STRIDE, int COLUMNS, int ROWS>
__attribute__((always_inline)) inline void neon_depthwise(const DepthwiseRowsF32& d, const UnaryF32& map,
                                                          const float* x, const float* w, float* y, float32x4_t low,
                                                          float32x4_t high) {
  float32x4_t sum[ROWS][COLUMNS][2];
  PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
    PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) {
      sum[r][i][0] = vld1q_f32(w);
      sum[r][i][1] = vld1q_f32(w + 4);
      asm volatile("" : "+r"(w));  // loaded again, both at once, and not copied one by one
    }
  }
  w += kNeonChannels;
  const ptrdiff_t step = d.pitch * static_cast<ptrdiff_t>(sizeof(float));
  const auto row_of_x = [&](auto first, auto rows, int ky0) __attribute__((always_inline)) {
    constexpr int kFirst = decltype(first)::value, kRows = decltype(rows)::value;  // output rows it is part of
    float32x4_t weight[kRows][KW][2];
    PINNACE_UNROLL for (int r = 0; r < kRows; ++r) {
      PINNACE_UNROLL for (int k = 0; k < KW; ++k) {
        const float* tap = w + ((ky0 - (kFirst + r) * STRIDE) * KW + k) * kNeonChannels;
        weight[r][k][0] = vld1q_f32(tap);
        weight[r][k][1] = vld1q_f32(tap + 4);
      }
    }
    const char* pixel = reinterpret_cast<const char*>(x);
    PINNACE_UNROLL for (int i = 0; i < (COLUMNS - 1) * STRIDE + KW; ++i) {
      const float32x4x2_t value = neon_load(pixel, step);
      PINNACE_UNROLL for (int r = 0; r < kRows; ++r) {
        PINNACE_UNROLL for (int k = 0; k < KW; ++k) {
          const int at = i - k;
          if (at >= 0 && at % STRIDE == 0 && at / STRIDE < COLUMNS) {
            auto& s = sum[kFirst + r][at / STRIDE];
            neon_multiply_add(s[0], value.val[0], weight[r][k][0]);
            neon_multiply_add(s[1], value.val[1], weight[r][k][1]);
          }
        }
      }
      asm volatile("");  // nothing is moved past it: loads brought forward would take the sums' registers
    }
    x += d.tap_row;
  };
  if constexpr (ROWS == 1) {
    for (int ky = 0; ky < d.kernel_h; ++ky) row_of_x(Number<0>{}, Number<1>{}, ky);
  } else {
    PINNACE_UNROLL for (int ky = 0; ky < STRIDE; ++ky) row_of_x(Number<0>{}, Number<1>{}, ky);
    PINNACE_UNROLL for (int ky = STRIDE; ky < KW; ++ky) row_of_x(Number<0>{}, Number<2>{}, ky);
    PINNACE_UNROLL for (int ky = KW; ky < KW + STRIDE; ++ky) row_of_x(Number<1>{}, Number<1>{}, ky);
  }
  const bool clamp = map.kind == UnaryKind::kRelu || map.kind == UnaryKind::kClip;
  if (clamp) {
    PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
      PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) {
        PINNACE_UNROLL for (int h = 0; h < 2; ++h) sum[r][i][h] = vminq_f32(vmaxq_f32(sum[r][i][h], low), high);
      }
    }
  }
  PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
    float* pixel = y + r * d.y_row;
    PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) {
      vst1q_f32(pixel, sum[r][i][0]);
      vst1q_f32(pixel + 4, sum[r][i][1]);
      pixel += d.y_pitch;
      asm volatile("" : "+r"(pixel));  // else each has an address of its own, and no two are stored at once
    }
    if (!clamp && map.kind != UnaryKind::kNone) {
      map_rows<Wide>(map, y + r * d.y_row, d.y_pitch, COLUMNS);
      map_rows<Wide>(map, y + r * d.y_row + 4, d.y_pitch, COLUMNS);
    }
  }
}

/// All outputs of one or two rows. A row is cut in tiles of MOST columns, and some of MOST - 1 so that they fill it.
template <int KW, int STRIDE, int ROWS>
void depthwise_of(const DepthwiseRowsF32& rows) {
  // Copies whose address nobody has stay in registers.
  const DepthwiseRowsF32 d = rows;
  const UnaryF32 map = rows.map;
  constexpr int kMost = KW == 3 ? 4 : KW == 5 ? 7 : 5;
  const int64_t panel = (1 + static_cast<int64_t>(d.kernel_h) * KW) * kNeonChannels;
  const float32x4_t low = vdupq_n_f32(map.kind == UnaryKind::kClip ? map.p : 0.0f);
  const float32x4_t high = vdupq_n_f32(map.kind == UnaryKind::kClip ? map.q : __builtin_inff());
  for (int64_t c = 0; c < d.channels; c += kNeonChannels) {
    const float* w = d.weights + c / kNeonChannels * panel;
    const float* x = d.x + c;
    float* y = d.y + c;
    const auto columns = [&](auto number) __attribute__((always_inline)) {
      constexpr int kColumns = decltype(number)::value;
      neon_depthwise<KW, STRIDE, kColumns, ROWS>(d, map, x, w, y, low, high);
      x += kColumns * STRIDE * d.pitch;
      y += kColumns * d.y_pitch;
    };
    for (int64_t left = d.out_w; left > 0;) {
      if (left % kMost == 0) {
        columns(Number<kMost>{});
        left -= kMost;
      } else if (left >= kMost - 1) {
        columns(Number<kMost - 1>{});
        left -= kMost - 1;
      } else {
        columns(Number<1>{});
        left -= 1;
      }
    }
  }
}

}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
