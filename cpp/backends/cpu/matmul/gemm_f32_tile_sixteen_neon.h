// The float32 matrix tile of ARM64 for panels of 16 columns, which are most: up to 4 rows by 16 columns, as assembly
// (sixteen_columns_neon.h), with residual, clamp and stores. Included by gemm_f32_tile_neon.h.
#pragma once

#define PINNACE_MULTIPLY(sum, b, a, lane) "fmla " sum ".4s, " b ".4s, " a ".s[" lane "]\n"
#define PINNACE_ELEMENT_SHIFT "2"
#define PINNACE_FLIPS 0
#include "backends/cpu/matmul/sixteen_columns_neon.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

#define PINNACE_ADD(i, left, right, s0, s1, s2, s3)          \
  "ld1 {v24.4s - v27.4s}, [%[residual]], %[residual_step]\n" \
  "fadd " s0 ".4s, " s0                                      \
  ".4s, v24.4s\n"                                            \
  "fadd " s1 ".4s, " s1                                      \
  ".4s, v25.4s\n"                                            \
  "fadd " s2 ".4s, " s2                                      \
  ".4s, v26.4s\n"                                            \
  "fadd " s3 ".4s, " s3 ".4s, v27.4s\n"
#define PINNACE_LOW(i, left, right, s0, s1, s2, s3) \
  "fmax " s0 ".4s, " s0                             \
  ".4s, v16.4s\n"                                   \
  "fmax " s1 ".4s, " s1                             \
  ".4s, v16.4s\n"                                   \
  "fmax " s2 ".4s, " s2                             \
  ".4s, v16.4s\n"                                   \
  "fmax " s3 ".4s, " s3 ".4s, v16.4s\n"
#define PINNACE_HIGH(i, left, right, s0, s1, s2, s3) \
  "fmin " s0 ".4s, " s0                              \
  ".4s, v17.4s\n"                                    \
  "fmin " s1 ".4s, " s1                              \
  ".4s, v17.4s\n"                                    \
  "fmin " s2 ".4s, " s2                              \
  ".4s, v17.4s\n"                                    \
  "fmin " s3 ".4s, " s3 ".4s, v17.4s\n"

#define PINNACE_TILES(MR) \
  "1: mov %[b], %[panel]\n"                                                                        \
  "mov %[block], %[blocks]\n"                                                                      \
  "mov %[left], %[block_count]\n" PINNACE_ROWS_##MR(PINNACE_START)                                 \
  "add %[b], %[b], 64\n" PINNACE_BLOCKS(MR)                                                        \
  "cbz %[residual], 9f\n" PINNACE_ROWS_##MR(PINNACE_ADD)                                           \
  "9: cbz %[limits], 10f\n"                                                                        \
  "ldp q16, q17, [%[limits]]\n" PINNACE_ROWS_##MR(PINNACE_LOW) PINNACE_ROWS_##MR(PINNACE_HIGH)     \
  "10:\n" PINNACE_ROWS_##MR(PINNACE_STORE_SUMS)                                                    \
  "add %[a], %[a], %[a_step]\n"                                                                    \
  "subs %[tiles], %[tiles], 1\n"                                                                   \
  "b.ne 1b\n"

/// The ends of tiles: where residuals (or none) are read, limits (or none) that results are held within, as one
/// register each, and where results are stored; steps are bytes between rows.
struct SixteenEnds {
  const float* residual;
  ptrdiff_t residual_step;
  const float* limits;
  float* c;
  ptrdiff_t c_step;
};

/// `tiles` (1 or more) of MR rows, one below the other, the first row at `a`.
template <int MR>
__attribute__((always_inline)) inline void sixteen_columns(const GemmRowsF32& g, int64_t tiles, const float* a,
                                                           SixteenEnds ends) {
  const float *b, *p0, *p1, *p2, *p3;
  const ptrdiff_t *block, row = g.a_row * static_cast<ptrdiff_t>(sizeof(float));
  int64_t left, n;
#define PINNACE_ASSEMBLE(MR)                                                                                           \
  asm volatile(PINNACE_TILES(MR)                                                                                       \
               : [tiles] "+&r"(tiles), [a] "+&r"(a), [residual] "+&r"(ends.residual), [c] "+&r"(ends.c), [b] "=&r"(b), \
                 [block] "=&r"(block), [left] "=&r"(left), [n] "=&r"(n), [p0] "=&r"(p0), [p1] "=&r"(p1),               \
                 [p2] "=&r"(p2), [p3] "=&r"(p3)                                                                        \
               : [panel] "r"(g.b), [blocks] "r"(g.blocks), [block_count] "r"(g.block_count), [row] "r"(row),           \
                 [a_step] "r"(MR * row), [k] "r"(g.k), [residual_step] "r"(ends.residual_step),                        \
                 [limits] "r"(ends.limits), [c_step] "r"(ends.c_step)                                                  \
               : PINNACE_CLOBBERED)
  if constexpr (MR == 4) {
    PINNACE_ASSEMBLE(4);
  } else if constexpr (MR == 3) {
    PINNACE_ASSEMBLE(3);
  } else if constexpr (MR == 2) {
    PINNACE_ASSEMBLE(2);
  } else {
    static_assert(MR == 1);
    PINNACE_ASSEMBLE(1);
  }
#undef PINNACE_ASSEMBLE
}

/// `count` tiles, one below the other.
template <class V, int MR>
__attribute__((noinline)) void sixteen_tiles(const GemmRowsF32& g, int64_t first, int64_t count) {
  constexpr ptrdiff_t kFloat = sizeof(float);
  const float* a = g.a + first * g.a_row;
  float* c = g.c + first * g.c_row;
  const float* residual = g.residual ? g.residual + first * g.residual_row : nullptr;
  const bool clamp = g.map.kind == UnaryKind::kRelu || g.map.kind == UnaryKind::kClip;
  if (g.columns == 16 && (clamp || g.map.kind == UnaryKind::kNone)) {
    const float low = g.map.kind == UnaryKind::kClip ? g.map.p : 0;
    const float high = g.map.kind == UnaryKind::kClip ? g.map.q : __builtin_inff();
    const float limits[] = {low, low, low, low, high, high, high, high};
    sixteen_columns<MR>(g, count, a,
                        {residual, g.residual_row * kFloat, clamp ? limits : nullptr, c, g.c_row * kFloat});
    return;
  }
  for (int64_t tile = 0; tile < count; ++tile) {
    float sums[MR * 16];
    sixteen_columns<MR>(g, 1, a, {nullptr, 0, nullptr, sums, 16 * kFloat});
    finish<V, 4>(g, sums, MR, c, residual);
    a += MR * g.a_row;
    c += MR * g.c_row;
    if (residual) residual += MR * g.residual_row;
  }
}

}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
