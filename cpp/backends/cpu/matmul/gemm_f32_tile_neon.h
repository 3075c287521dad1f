// The float32 matrix tiles of ARM64, in place of the one in gemm_f32_tile.h, which includes this. A multiply-add
// takes one of its operands from any lane of a register: a row's elements are loaded four at a time, and no instruction
// is spent on spreading them. Panels of 16 columns of floats have a tile in assembly (gemm_f32_tile_sixteen_neon.h);
// those of 16 bits, 6 rows by 16 columns, and those of 8, which may end a matrix, up to 10 by 8, are here: sums, rows
// and two registers of the panel fit in 32 registers.
#pragma once

#include <arm_neon.h>

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

/// The tile in assembly reads weights as floats.
constexpr bool kAssembly = sizeof(Weight) == sizeof(float);
/// Rows of tiles of 16 and of 8 columns. Narrower ones would be 21 more functions of 3 KB; those of 8 columns and 16
/// bits, which are rare, are kept few.
constexpr int kSixteenRows = kAssembly ? 4 : 6, kEightRows = kAssembly ? 10 : 4;

#define PINNACE_ROLLED _Pragma("GCC unroll 1")

/// 4 floats from p, which goes on behind them: as one instruction, which GCC 12 does not make of it.
__attribute__((always_inline)) inline float32x4_t neon_load_next(const float*& p) {
  float32x4_t value;
  asm("ldr %q0, [%1], 16" : "=w"(value), "+r"(p) : "m"(*reinterpret_cast<const float(*)[4]>(p)));
  return value;
}

// Nothing is moved past it: GCC 12 brings loads forward until registers run out, and spills a third of the sums.
#define PINNACE_IN_ORDER asm volatile("")

/// sum += value * lane LANE of row, in one instruction: of vfmaq_laneq_f32 GCC 12 makes two, and keeps spread lanes in
/// registers that sums need.
template <int LANE>
__attribute__((always_inline)) inline void neon_multiply_add(float32x4_t& sum, float32x4_t value, float32x4_t row) {
  asm("fmla %0.4s, %1.4s, %2.s[%3]" : "+w"(sum) : "w"(value), "w"(row), "i"(LANE));
}

/// sum += one element of every row, lane LANE of it, times register J of a row of the panel.
template <int MR, int NV, int LANE, int J>
__attribute__((always_inline)) inline void neon_column(float32x4_t value, const float32x4_t (&row)[MR],
                                                       float32x4_t (&sum)[MR][NV]) {
  PINNACE_UNROLL for (int i = 0; i < MR; ++i) neon_multiply_add<LANE>(sum[i][J], value, row[i]);
}

/// A register of the panel.
__attribute__((always_inline)) inline float32x4_t neon_weights(const float* b) {
  return vld1q_f32(b);
}
__attribute__((always_inline)) inline float32x4_t neon_weights(const F16Bits* b) {
  return Floats<4>::load(b);
}
__attribute__((always_inline)) inline float32x4_t neon_weights(const BF16Bits* b) {
  return Floats<4>::load(b);
}

/// The panel's registers from AT to END, where register r is J = r % NV of lane r / NV, loaded in pairs.
template <int MR, int NV, int END, int AT = 0>
__attribute__((always_inline)) inline void neon_steps(const Weight* b, const float32x4_t (&row)[MR],
                                                      float32x4_t (&sum)[MR][NV]) {
  if constexpr (AT + 1 < END) {
    float32x4_t left = neon_weights(b + 4 * AT), right = neon_weights(b + 4 * AT + 4);
    asm volatile("" : "+w"(left), "+w"(right));
    neon_column<MR, NV, AT / NV, AT % NV>(left, row, sum);
    neon_column<MR, NV, (AT + 1) / NV, (AT + 1) % NV>(right, row, sum);
    PINNACE_IN_ORDER;
    neon_steps<MR, NV, END, AT + 2>(b, row, sum);
  } else if constexpr (AT < END) {
    neon_column<MR, NV, AT / NV, AT % NV>(neon_weights(b + 4 * AT), row, sum);
  }
}

/// Four steps of k, after which rows and panel go on.
template <int MR, int NV>
__attribute__((always_inline)) inline void neon_four_steps(const float* (&p)[MR], const Weight*& b,
                                                           float32x4_t (&sum)[MR][NV]) {
  float32x4_t row[MR];
  PINNACE_UNROLL for (int i = 0; i < MR; ++i) row[i] = neon_load_next(p[i]);
  PINNACE_IN_ORDER;
  neon_steps<MR, NV, 4 * NV>(b, row, sum);
  b += 16 * NV;
}

/// `count` tiles, one below the other.
template <class V, int MR, int NV>
__attribute__((noinline)) void tiles_by_lanes(const GemmRowsF32& rows, int64_t first, int64_t count) {
  constexpr int kWidth = NV * 4;
  const GemmRowsF32 g = rows;  // which nothing that is stored can change
  const float* a_tile = g.a + first * g.a_row;
  float* c = g.c + first * g.c_row;
  const float* residual = g.residual ? g.residual + first * g.residual_row : nullptr;
  const bool clamp = g.map.kind == UnaryKind::kRelu || g.map.kind == UnaryKind::kClip;
  const bool whole = g.columns == kWidth && (clamp || g.map.kind == UnaryKind::kNone);
  const float32x4_t low = vdupq_n_f32(g.map.kind == UnaryKind::kClip ? g.map.p : 0.0f);
  const float32x4_t high = vdupq_n_f32(g.map.kind == UnaryKind::kClip ? g.map.q : __builtin_inff());
  for (int64_t tile = 0; tile < count; ++tile) {
    float32x4_t sum[MR][NV];
    const float* bias = g.b;
    PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
      PINNACE_UNROLL for (int j = 0; j < NV; ++j) sum[i][j] = vld1q_f32(bias + 4 * j);
      asm volatile("" : "+r"(bias));  // loaded again, two registers at once, and not copied one by one
    }
    const auto* b = reinterpret_cast<const Weight*>(g.b + kWidth);
    for (int64_t block = 0; block < g.block_count; ++block) {
      const float* p[MR];
      p[0] = a_tile + g.blocks[block];
      PINNACE_UNROLL for (int i = 1; i < MR; ++i) {
        p[i] = p[i - 1] + g.a_row;
        asm volatile("" : "+r"(p[i]));  // one addition for each, not two
      }
      for (int64_t k = g.k >> 3; k > 0; --k) {
        neon_four_steps<MR, NV>(p, b, sum);
        neon_four_steps<MR, NV>(p, b, sum);
      }
      if (g.k & 4) neon_four_steps<MR, NV>(p, b, sum);
      PINNACE_ROLLED for (int64_t k = g.k & 3; k > 0; --k) {
        float32x4_t row[MR];
        PINNACE_UNROLL for (int i = 0; i < MR; ++i) row[i] = vld1q_dup_f32(p[i]++);
        neon_steps<MR, NV, NV>(b, row, sum);
        b += kWidth;
      }
    }
    if (whole) {
      // A row's registers are loaded and stored two at a time where they lie behind one pointer.
      if (residual) {
        const float* from = residual;
        PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
          PINNACE_UNROLL for (int j = 0; j < NV; ++j) sum[i][j] = vaddq_f32(sum[i][j], vld1q_f32(from + 4 * j));
          from += g.residual_row;
          asm volatile("" : "+r"(from));
        }
      }
      if (clamp) {
        PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
          PINNACE_UNROLL for (int j = 0; j < NV; ++j) sum[i][j] = vminq_f32(vmaxq_f32(sum[i][j], low), high);
        }
      }
      float* to = c;
      PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
        PINNACE_UNROLL for (int j = 0; j < NV; ++j) vst1q_f32(to + 4 * j, sum[i][j]);
        to += g.c_row;
        asm volatile("" : "+r"(to));
      }
    } else {
      float tile_of_sums[MR * kWidth];
      PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
        PINNACE_UNROLL for (int j = 0; j < NV; ++j) vst1q_f32(tile_of_sums + i * kWidth + 4 * j, sum[i][j]);
      }
      finish<V, NV>(rows, tile_of_sums, MR, c, residual);
    }
    a_tile += MR * g.a_row;
    c += MR * g.c_row;
    if (residual) residual += MR * g.residual_row;
  }
}

#undef PINNACE_IN_ORDER
#undef PINNACE_ROLLED

}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu

#include "backends/cpu/matmul/gemm_f32_tile_sixteen_neon.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

/// `count` tiles, one below the other.
template <class V, int MR, int NV>
inline void tiles(const GemmRowsF32& rows, int64_t first, int64_t count) {
  if constexpr (kAssembly && NV == 4) {
    sixteen_tiles<V, MR>(rows, first, count);
  } else {
    tiles_by_lanes<V, MR, NV>(rows, first, count);
  }
}

}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
