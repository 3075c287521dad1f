// The float32 matrix tile of ARM64, in place of the one in gemm_f32_tiles_body.h, which includes this. A multiply-add
// takes one of its operands from any lane of a register: a row's elements are loaded four at a time, and no instruction
// is spent on spreading them. With 32 registers 6 rows by 16 columns hold 24 sums, 6 registers of rows and 2 of the
// panel: 96 multiply-adds in 112 instructions.
#pragma once

#include <arm_neon.h>

namespace pinnace {
namespace PINNACE_LEVEL {
namespace {

/// Rows of a tile NV registers wide: sums, one register for every row and two of the panel fit in 32.
constexpr int neon_rows(int nv) {
  return nv == 4 ? 6 : nv == 3 ? 7 : nv == 2 ? 10 : 12;
}

#define PINNACE_ROLLED _Pragma("GCC unroll 1")

// Nothing is moved past it: GCC 12 brings loads forward until registers run out, and spills a third of the sums.
#define PINNACE_IN_ORDER asm volatile("")

/// sum += value * lane LANE of row, in one instruction: of vfmaq_laneq_f32 GCC 12 makes two, and keeps spread lanes in
/// registers that sums need.
template <int LANE>
__attribute__((always_inline)) inline void neon_multiply_add(float32x4_t& sum, float32x4_t value, float32x4_t row) {
  asm("fmla %0.4s, %1.4s, %2.s[%3]" : "+w"(sum) : "w"(value), "w"(row), "i"(LANE));
}

/// sum += one element of every row, lane `LANE` of it, times NV registers of the panel, which are loaded in pairs.
template <int MR, int NV, int LANE>
__attribute__((always_inline)) inline void neon_step(const float* b, const float32x4_t (&row)[MR],
                                                     float32x4_t (&sum)[MR][NV]) {
  PINNACE_UNROLL for (int j = 0; j < NV; j += 2) {
    const bool pair = j + 1 < NV;
    const float32x4_t left = vld1q_f32(b + 4 * j), right = pair ? vld1q_f32(b + 4 * j + 4) : left;
    PINNACE_IN_ORDER;
    PINNACE_UNROLL for (int i = 0; i < MR; ++i) neon_multiply_add<LANE>(sum[i][j], left, row[i]);
    if (pair) {
      PINNACE_UNROLL for (int i = 0; i < MR; ++i) neon_multiply_add<LANE>(sum[i][j + 1], right, row[i]);
    }
    PINNACE_IN_ORDER;
  }
}

/// Four steps of k: rows p[i] + at, the panel's next rows b.
template <int MR, int NV>
__attribute__((always_inline)) inline void neon_four_steps(const float* const (&p)[MR], ptrdiff_t at, const float* b,
                                                           float32x4_t (&sum)[MR][NV]) {
  float32x4_t row[MR];
  PINNACE_UNROLL for (int i = 0; i < MR; ++i) row[i] = vld1q_f32(p[i] + at);
  PINNACE_IN_ORDER;
  neon_step<MR, NV, 0>(b, row, sum);
  neon_step<MR, NV, 1>(b + 4 * NV, row, sum);
  neon_step<MR, NV, 2>(b + 8 * NV, row, sum);
  neon_step<MR, NV, 3>(b + 12 * NV, row, sum);
}

/// `count` tiles, one below the other.
template <class V, int MR, int NV>
__attribute__((noinline)) void tiles(const GemmRowsF32& g, int64_t first, int64_t count) {
  constexpr int kWidth = NV * 4;
  const float* a_tile = g.a + first * g.a_row;
  float* c = g.c + first * g.c_row;
  const float* residual = g.residual ? g.residual + first * g.residual_row : nullptr;
  const bool clamp = g.map.kind == MapKind::kRelu || g.map.kind == MapKind::kClip;
  const bool whole = g.columns == kWidth && (clamp || g.map.kind == MapKind::kNone);
  const float32x4_t low = vdupq_n_f32(g.map.kind == MapKind::kClip ? g.map.a : 0.0f);
  const float32x4_t high = vdupq_n_f32(g.map.kind == MapKind::kClip ? g.map.b : __builtin_inff());
  for (int64_t tile = 0; tile < count; ++tile) {
    float32x4_t sum[MR][NV];
    const float* bias = g.b;
    PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
      PINNACE_UNROLL for (int j = 0; j < NV; ++j) sum[i][j] = vld1q_f32(bias + 4 * j);
      asm volatile("" : "+r"(bias));  // loaded again, two registers at once, and not copied one by one
    }
    const float* b = g.b + kWidth;
    for (int64_t block = 0; block < g.block_count; ++block) {
      const float* p[MR];
      PINNACE_UNROLL for (int i = 0; i < MR; ++i) p[i] = a_tile + g.blocks[block] + i * g.a_row;
      int64_t k = 0;
      for (; k + 8 <= g.k; k += 8) {
        neon_four_steps<MR, NV>(p, k, b, sum);
        neon_four_steps<MR, NV>(p, k + 4, b + 4 * kWidth, sum);
        b += 8 * kWidth;
      }
      if (k + 4 <= g.k) {
        neon_four_steps<MR, NV>(p, k, b, sum);
        b += 4 * kWidth;
        k += 4;
      }
      PINNACE_ROLLED for (; k < g.k; ++k) {
        float32x4_t row[MR];
        PINNACE_UNROLL for (int i = 0; i < MR; ++i) row[i] = vld1q_dup_f32(p[i] + k);
        neon_step<MR, NV, 0>(b, row, sum);
        b += kWidth;
      }
    }
    if (whole) {
      if (residual) {
        PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
          PINNACE_UNROLL for (int j = 0; j < NV; ++j) {
            sum[i][j] = vaddq_f32(sum[i][j], vld1q_f32(residual + i * g.residual_row + 4 * j));
          }
        }
      }
      if (clamp) {
        PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
          PINNACE_UNROLL for (int j = 0; j < NV; ++j) sum[i][j] = vminq_f32(vmaxq_f32(sum[i][j], low), high);
        }
      }
      PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
        PINNACE_UNROLL for (int j = 0; j < NV; ++j) vst1q_f32(c + i * g.c_row + 4 * j, sum[i][j]);
      }
    } else {
      float tile_of_sums[MR * kWidth];
      PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
        PINNACE_UNROLL for (int j = 0; j < NV; ++j) vst1q_f32(tile_of_sums + i * kWidth + 4 * j, sum[i][j]);
      }
      finish<V, NV>(g, tile_of_sums, MR, c, residual);
    }
    a_tile += MR * g.a_row;
    c += MR * g.c_row;
    if (residual) residual += MR * g.residual_row;
  }
}

#undef PINNACE_IN_ORDER
#undef PINNACE_ROLLED

}  // namespace
}  // namespace PINNACE_LEVEL
}  // namespace pinnace
