// The 8-bit matrix tiles of ARM64, in place of the one in gemm_i8_tiles.body.cc, which includes this: up to 4 rows by
// 16 columns, as assembly down to the stored bytes. Without dot products by widened bytes (gemm_i8_halves_neon.h). With
// them by lanes (sixteen_columns_neon.h): a row's quads times quads of 16 columns, by SDOT, whose activations are
// flipped to signed first, or by SUDOT. With matrix products by octets where it can be (gemm_i8_octets_neon.h).
#pragma once

#define PINNACE_ELEMENT_SHIFT "0"
#if PINNACE_USDOT
#define PINNACE_MULTIPLY(sum, b, a, lane) "sudot " sum ".4s, " b ".16b, " a ".4b[" lane "]\n"
#define PINNACE_FLIPS 0
#else
#define PINNACE_MULTIPLY(sum, b, a, lane) "sdot " sum ".4s, " b ".16b, " a ".4b[" lane "]\n"
#define PINNACE_FLIPS 1
#endif
#include "backends/cpu/matmul/sixteen_columns_neon.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

// What a row is stored by: multipliers, zero point, limits. Sums by halves leave other registers than those by lanes.
#if PINNACE_SDOT || PINNACE_USDOT
#define PINNACE_M0 "v24"
#define PINNACE_M1 "v25"
#define PINNACE_M2 "v26"
#define PINNACE_M3 "v27"
#define PINNACE_ZERO "v28"
#define PINNACE_LEAST "v29"
#define PINNACE_MOST "v30"
#else
#define PINNACE_M0 "v4"
#define PINNACE_M1 "v5"
#define PINNACE_M2 "v6"
#define PINNACE_M3 "v7"
#define PINNACE_ZERO "v8"
#define PINNACE_LEAST "v9"
#define PINNACE_MOST "v10"
#endif
// A row of sums s0 to s3 as bytes, through registers t0 and t1.
#define PINNACE_STORE_BYTES(t0, t1, s0, s1, s2, s3)                                             \
  "scvtf " s0 ".4s, " s0 ".4s\n scvtf " s1 ".4s, " s1                                           \
  ".4s\n"                                                                                       \
  "scvtf " s2 ".4s, " s2 ".4s\n scvtf " s3 ".4s, " s3                                           \
  ".4s\n"                                                                                       \
  "fmul " s0 ".4s, " s0 ".4s, " PINNACE_M0 ".4s\n fmul " s1 ".4s, " s1 ".4s, " PINNACE_M1       \
  ".4s\n"                                                                                       \
  "fmul " s2 ".4s, " s2 ".4s, " PINNACE_M2 ".4s\n fmul " s3 ".4s, " s3 ".4s, " PINNACE_M3       \
  ".4s\n"                                                                                       \
  "fcvtns " s0 ".4s, " s0 ".4s\n fcvtns " s1 ".4s, " s1                                         \
  ".4s\n"                                                                                       \
  "fcvtns " s2 ".4s, " s2 ".4s\n fcvtns " s3 ".4s, " s3                                         \
  ".4s\n"                                                                                       \
  "sqxtn " t0 ".4h, " s0 ".4s\n sqxtn " t1 ".4h, " s2                                           \
  ".4s\n"                                                                                       \
  "sqxtn2 " t0 ".8h, " s1 ".4s\n sqxtn2 " t1 ".8h, " s3                                         \
  ".4s\n"                                                                                       \
  "sqadd " t0 ".8h, " t0 ".8h, " PINNACE_ZERO ".8h\n sqadd " t1 ".8h, " t1 ".8h, " PINNACE_ZERO \
  ".8h\n"                                                                                       \
  "sqxtun " t0 ".8b, " t0 ".8h\n sqxtun2 " t0 ".16b, " t1                                       \
  ".8h\n"                                                                                       \
  "umax " t0 ".16b, " t0 ".16b, " PINNACE_LEAST                                                 \
  ".16b\n"                                                                                      \
  "umin " t0 ".16b, " t0 ".16b, " PINNACE_MOST                                                  \
  ".16b\n"                                                                                      \
  "st1 {" t0 ".16b}, [%[c]], %[c_step]\n"
#define PINNACE_NEXT_TILE        \
  "add %[a], %[a], %[a_step]\n"  \
  "subs %[tiles], %[tiles], 1\n" \
  "b.ne 1b\n"
#define PINNACE_LOAD_STORE               \
  "ld1 {" PINNACE_M0 ".4s - " PINNACE_M3 \
  ".4s}, [%[multipliers]]\n"             \
  "dup " PINNACE_ZERO                    \
  ".8h, %w[zero]\n"                      \
  "dup " PINNACE_LEAST                   \
  ".16b, %w[low]\n"                      \
  "dup " PINNACE_MOST ".16b, %w[high]\n"

#if PINNACE_SDOT || PINNACE_USDOT
#define PINNACE_STORE_LANES(i, left, right, ...) PINNACE_STORE_BYTES("v" left, "v" right, __VA_ARGS__)
#define PINNACE_TILES(MR) \
  "1: mov %[b], %[panel]\n"                                                                 \
  "mov %[block], %[blocks]\n"                                                               \
  "mov %[left], %[block_count]\n" PINNACE_ROWS_##MR(PINNACE_START)                          \
  "movi v17.16b, 128\n"                                                                     \
  "add %[b], %[b], 128\n" PINNACE_BLOCKS(MR)                                                \
  "cbz %[multipliers], 9f\n" PINNACE_LOAD_STORE PINNACE_ROWS_##MR(PINNACE_STORE_LANES)      \
  "b 10f\n"                                                                                 \
  "9:\n" PINNACE_ROWS_##MR(PINNACE_STORE_SUMS)                                              \
  "10:\n" PINNACE_NEXT_TILE
#else
#include "backends/cpu/matmul/gemm_i8_halves_neon.h"
#endif
#if PINNACE_USDOT
#include "backends/cpu/matmul/gemm_i8_octets_neon.h"
#endif

/// `tiles` (1 or more) of MR rows, one below the other, the first row at `a`: bytes if there are `multipliers`, else
/// sums, at `c`, its rows c_step bytes apart.
template <int MR>
__attribute__((always_inline)) inline void sixteen_columns(const GemmRowsI8& g, int64_t tiles, const uint8_t* a,
                                                           const float* multipliers, const StoreI8& store, void* c,
                                                           ptrdiff_t c_step) {
  const uint8_t *p0, *p1, *p2, *p3;
  const std::byte* b;
  const ptrdiff_t* block;
  int64_t left, n;
#define PINNACE_ASSEMBLE(TEXT, ...)                                                                                  \
  asm volatile(TEXT                                                                                                  \
               : [tiles] "+&r"(tiles), [a] "+&r"(a), [c] "+&r"(c), [b] "=&r"(b), [block] "=&r"(block),               \
                 [left] "=&r"(left), [n] "=&r"(n), [p0] "=&r"(p0), [p1] "=&r"(p1), [p2] "=&r"(p2), [p3] "=&r"(p3)    \
               : [panel] "r"(g.b), [blocks] "r"(g.blocks), [block_count] "r"(g.block_count), [row] "r"(g.a_row),     \
                 [a_step] "r"(MR * g.a_row), [k] "r"(g.quads), [multipliers] "r"(multipliers), [c_step] "r"(c_step), \
                 [zero] "r"(store.zero), [low] "r"(store.low), [high] "r"(store.high)__VA_ARGS__                     \
               : PINNACE_CLOBBERED)
#if PINNACE_USDOT
  if (g.quads % 2 == 0) {
    const ptrdiff_t row1 = MR > 1 ? g.a_row : 0, row3 = MR > 3 ? g.a_row : 0;
#define PINNACE_ODD_ROWS , [row1] "r"(row1), [row3] "r"(row3)
    if constexpr (MR == 4) PINNACE_ASSEMBLE(PINNACE_PAIR_TILES(4), PINNACE_ODD_ROWS);
    if constexpr (MR == 3) PINNACE_ASSEMBLE(PINNACE_PAIR_TILES(3), PINNACE_ODD_ROWS);
    if constexpr (MR == 2) PINNACE_ASSEMBLE(PINNACE_PAIR_TILES(2), PINNACE_ODD_ROWS);
    if constexpr (MR == 1) PINNACE_ASSEMBLE(PINNACE_PAIR_TILES(1), PINNACE_ODD_ROWS);
    return;
  }
#endif
  if constexpr (MR == 4) PINNACE_ASSEMBLE(PINNACE_TILES(4));
  if constexpr (MR == 3) PINNACE_ASSEMBLE(PINNACE_TILES(3));
  if constexpr (MR == 2) PINNACE_ASSEMBLE(PINNACE_TILES(2));
  if constexpr (MR == 1) PINNACE_ASSEMBLE(PINNACE_TILES(1));
#undef PINNACE_ASSEMBLE
}

/// `count` tiles, one below the other. Nothing is fetched ahead: a panel of bytes is small.
template <class V, int MR, int NV>
__attribute__((noinline)) void tiles(const GemmRowsI8& g, int64_t first, int64_t count, bool as_sums, Ahead) {
  const uint8_t* a = g.a + first * g.a_row;
  const auto* multipliers = reinterpret_cast<const float*>(g.b) + 16;
  const bool whole = g.columns >= 16, adds = g.added.at;
  const StoreI8 store = adds ? StoreI8{g.added.own.zero} : g.store;
  if (!as_sums && whole && !adds) {
    sixteen_columns<MR>(g, count, a, multipliers, store, g.c + first * g.c_row, g.c_row);
    return;
  }
  const auto add = add_rows_of<V, NV>(g);
  for (int64_t tile = 0; tile < count; ++tile, first += MR, a += MR * g.a_row) {
    uint8_t part[MR * 16];
    if (as_sums) {
      int32_t all[MR * 16];
      sixteen_columns<MR>(g, 1, a, nullptr, store, all, sizeof(int32_t) * 16);
      store_sums(g, first, MR, 16, all, 16, store, part);
      if (g.sums) continue;
    } else {
      sixteen_columns<MR>(g, 1, a, multipliers, store, part, 16);
    }
    if (adds) add(g, first, MR, part, whole ? g.c + first * g.c_row : part, whole ? g.c_row : 16);
    if (!whole || !adds) store_part<16>(g, first, MR, part);
  }
}

}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
