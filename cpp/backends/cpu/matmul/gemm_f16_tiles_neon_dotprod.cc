// Matrix tiles of fp16 values for ARMv8.2 with arithmetic on them: rows, panels, sums and results have 16 bits. A tile
// is up to 8 rows by 16 columns, two registers of sums a row, as assembly for the reasons of sixteen_columns_neon.h:
// 128 multiply-adds of 8 numbers each in 142 instructions. The last panel may have 8 columns, one register a row.
//
// A multiply-add takes one lane of a register only from v0 to v15. Rows of the left side are in v0 to v7, 8 elements
// each; the panel in v8 to v11 and v12 to v15, in turn; sums in v16 to v31.
#include <arm_neon.h>

#include "backends/cpu/matmul/gemm_f32_tiles.h"
#include "backends/cpu/unary/activation_registers.h"

#include "backends/cpu/simd/f32.h"

namespace pinnace::cpu {
namespace neon_dotprod {
namespace {

// LINE(a row's number, its two registers of sums, ...) for 1 to 8 rows.
#define PINNACE_ROWS_1(LINE, ...) LINE("0", "16", "17", __VA_ARGS__)
#define PINNACE_ROWS_2(LINE, ...) PINNACE_ROWS_1(LINE, __VA_ARGS__) LINE("1", "18", "19", __VA_ARGS__)
#define PINNACE_ROWS_3(LINE, ...) PINNACE_ROWS_2(LINE, __VA_ARGS__) LINE("2", "20", "21", __VA_ARGS__)
#define PINNACE_ROWS_4(LINE, ...) PINNACE_ROWS_3(LINE, __VA_ARGS__) LINE("3", "22", "23", __VA_ARGS__)
#define PINNACE_ROWS_5(LINE, ...) PINNACE_ROWS_4(LINE, __VA_ARGS__) LINE("4", "24", "25", __VA_ARGS__)
#define PINNACE_ROWS_6(LINE, ...) PINNACE_ROWS_5(LINE, __VA_ARGS__) LINE("5", "26", "27", __VA_ARGS__)
#define PINNACE_ROWS_7(LINE, ...) PINNACE_ROWS_6(LINE, __VA_ARGS__) LINE("6", "28", "29", __VA_ARGS__)
#define PINNACE_ROWS_8(LINE, ...) PINNACE_ROWS_7(LINE, __VA_ARGS__) LINE("7", "30", "31", __VA_ARGS__)

// One step of k, by one lane of every row.
#define PINNACE_MULTIPLY_16(i, s0, s1, lane, b0, b1) \
  "fmla v" s0 ".8h, v" b0 ".8h, v" i ".h[" lane      \
  "]\n"                                              \
  "fmla v" s1 ".8h, v" b1 ".8h, v" i ".h[" lane "]\n"
#define PINNACE_MULTIPLY_8(i, s0, s1, lane, b0) "fmla v" s0 ".8h, v" b0 ".8h, v" i ".h[" lane "]\n"
#define PINNACE_STEP_16(MR, ...) PINNACE_ROWS_##MR(PINNACE_MULTIPLY_16, __VA_ARGS__)
#define PINNACE_STEP_8(MR, ...) PINNACE_ROWS_##MR(PINNACE_MULTIPLY_8, __VA_ARGS__)

#define PINNACE_EVEN "ld1 {v8.8h - v11.8h}, [%[b]], 64\n"
#define PINNACE_ODD "ld1 {v12.8h - v15.8h}, [%[b]], 64\n"
#define PINNACE_LOAD_8(i, s0, s1, ...) "ldr q" i ", [%[p" i "]], 16\n"
#define PINNACE_LOAD_4(i, s0, s1, ...) "ldr d" i ", [%[p" i "]], 8\n"
#define PINNACE_LOAD_1(i, s0, s1, ...) "ldr h" i ", [%[p" i "]], 2\n"

// 8, 4 and 1 steps. The panel is loaded ahead of the multiply-adds, for processors that execute in order.
#define PINNACE_EIGHT_16(MR)                                                                      \
  PINNACE_EVEN PINNACE_ROWS_##MR(PINNACE_LOAD_8, ) PINNACE_ODD PINNACE_STEP_16(MR, "0", "8", "9") \
      PINNACE_STEP_16(MR, "1", "10", "11") PINNACE_EVEN PINNACE_STEP_16(MR, "2", "12", "13")      \
          PINNACE_STEP_16(MR, "3", "14", "15") PINNACE_ODD PINNACE_STEP_16(MR, "4", "8", "9")     \
              PINNACE_STEP_16(MR, "5", "10", "11") PINNACE_STEP_16(MR, "6", "12", "13")           \
                  PINNACE_STEP_16(MR, "7", "14", "15")
#define PINNACE_FOUR_16(MR)                                                                       \
  PINNACE_EVEN PINNACE_ROWS_##MR(PINNACE_LOAD_4, ) PINNACE_ODD PINNACE_STEP_16(MR, "0", "8", "9") \
      PINNACE_STEP_16(MR, "1", "10", "11") PINNACE_STEP_16(MR, "2", "12", "13") PINNACE_STEP_16(MR, "3", "14", "15")
#define PINNACE_ONE_16(MR) \
  "ld1 {v8.8h - v9.8h}, [%[b]], 32\n" PINNACE_ROWS_##MR(PINNACE_LOAD_1, ) PINNACE_STEP_16(MR, "0", "8", "9")
#define PINNACE_EIGHT_8(MR)                                                                         \
  PINNACE_EVEN PINNACE_ROWS_##MR(PINNACE_LOAD_8, ) PINNACE_ODD PINNACE_STEP_8(MR, "0", "8")         \
      PINNACE_STEP_8(MR, "1", "9") PINNACE_STEP_8(MR, "2", "10") PINNACE_STEP_8(MR, "3", "11")      \
          PINNACE_STEP_8(MR, "4", "12") PINNACE_STEP_8(MR, "5", "13") PINNACE_STEP_8(MR, "6", "14") \
              PINNACE_STEP_8(MR, "7", "15")
#define PINNACE_FOUR_8(MR)                                                                                   \
  PINNACE_EVEN PINNACE_ROWS_##MR(PINNACE_LOAD_4, ) PINNACE_STEP_8(MR, "0", "8") PINNACE_STEP_8(MR, "1", "9") \
      PINNACE_STEP_8(MR, "2", "10") PINNACE_STEP_8(MR, "3", "11")
#define PINNACE_ONE_8(MR) "ldr q8, [%[b]], 16\n" PINNACE_ROWS_##MR(PINNACE_LOAD_1, ) PINNACE_STEP_8(MR, "0", "8")

// Begin and end of a tile.
#define PINNACE_START_16(i, s0, s1, ...) "ldp q" s0 ", q" s1 ", [%[b]]\n"
#define PINNACE_START_8(i, s0, s1, ...) "ldr q" s0 ", [%[b]]\n"
#define PINNACE_ADD_16(i, s0, s1, ...)                     \
  "ld1 {v8.8h - v9.8h}, [%[residual]], %[residual_step]\n" \
  "fadd v" s0 ".8h, v" s0                                  \
  ".8h, v8.8h\n"                                           \
  "fadd v" s1 ".8h, v" s1 ".8h, v9.8h\n"
#define PINNACE_ADD_8(i, s0, s1, ...)              \
  "ld1 {v8.8h}, [%[residual]], %[residual_step]\n" \
  "fadd v" s0 ".8h, v" s0 ".8h, v8.8h\n"
#define PINNACE_CLAMP(s) "fmax v" s ".8h, v" s ".8h, v8.8h\nfmin v" s ".8h, v" s ".8h, v9.8h\n"
#define PINNACE_CLAMP_16(i, s0, s1, ...) PINNACE_CLAMP(s0) PINNACE_CLAMP(s1)
#define PINNACE_CLAMP_8(i, s0, s1, ...) PINNACE_CLAMP(s0)
#define PINNACE_STORE_16(i, s0, s1, ...) "st1 {v" s0 ".8h - v" s1 ".8h}, [%[c]], %[c_step]\n"
#define PINNACE_STORE_8(i, s0, s1, ...) "st1 {v" s0 ".8h}, [%[c]], %[c_step]\n"

#define PINNACE_TILES(MR, WIDTH, WIDTH_BYTES) \
  "1: mov %[b], %[panel]\n"                                                \
  "mov %[block], %[blocks]\n"                                              \
  "mov %[left], %[block_count]\n"                                          \
  PINNACE_ROWS_##MR(PINNACE_START_##WIDTH, )                               \
  "add %[b], %[b], " WIDTH_BYTES "\n"                                      \
  "2: ldr %[p0], [%[block]], 8\n"                                          \
  "lsr %[n], %[k], 3\n"                                                    \
  "add %[p0], %[a], %[p0], lsl 1\n"                                        \
  "add %[p1], %[p0], %[row]\n"                                             \
  "add %[p2], %[p1], %[row]\n"                                             \
  "add %[p3], %[p2], %[row]\n"                                             \
  "add %[p4], %[p3], %[row]\n"                                             \
  "add %[p5], %[p4], %[row]\n"                                             \
  "add %[p6], %[p5], %[row]\n"                                             \
  "add %[p7], %[p6], %[row]\n"                                             \
  "cbz %[n], 4f\n"                                                         \
  "3:\n" PINNACE_EIGHT_##WIDTH(MR)                                         \
  "subs %[n], %[n], 1\n"                                                   \
  "b.ne 3b\n"                                                              \
  "4: ands %[n], %[k], 7\n"                                                \
  "b.eq 7f\n"                                                              \
  "tbz %[k], 2, 5f\n" PINNACE_FOUR_##WIDTH(MR)                             \
  "5: ands %[n], %[k], 3\n"                                                \
  "b.eq 7f\n"                                                              \
  "6:\n" PINNACE_ONE_##WIDTH(MR)                                           \
  "subs %[n], %[n], 1\n"                                                   \
  "b.ne 6b\n"                                                              \
  "7: subs %[left], %[left], 1\n"                                          \
  "b.ne 2b\n"                                                              \
  "cbz %[residual], 8f\n" PINNACE_ROWS_##MR(PINNACE_ADD_##WIDTH, )         \
  "8: cbz %[limits], 9f\n"                                                 \
  "ldp q8, q9, [%[limits]]\n" PINNACE_ROWS_##MR(PINNACE_CLAMP_##WIDTH, )   \
  "9:\n" PINNACE_ROWS_##MR(PINNACE_STORE_##WIDTH, )                        \
  "add %[a], %[a], %[a_step]\n"                                            \
  "subs %[tiles], %[tiles], 1\n"                                           \
  "b.ne 1b\n"

using Rows = GemmRows<uint16_t>;
constexpr ptrdiff_t kBytes = sizeof(uint16_t);

/// The ends of tiles: where residuals (or none) are read, limits (or none) that results are held within, as one
/// register each, and where results are stored; steps are bytes between rows.
struct Ends {
  const uint16_t* residual;
  ptrdiff_t residual_step;
  const float16_t* limits;
  uint16_t* c;
  ptrdiff_t c_step;
};

/// `tiles` (1 or more) of MR rows by WIDTH columns, one below the other, the first row at `a`.
template <int MR, int WIDTH>
__attribute__((noinline)) void run_tiles(const Rows& g, int64_t tiles, const uint16_t* a, Ends ends) {
  const uint16_t *b, *p0, *p1, *p2, *p3, *p4, *p5, *p6, *p7;
  const ptrdiff_t *block, row = g.a_row * kBytes;
  int64_t left, n;
#define PINNACE_ASSEMBLE(...)                                                                                          \
  asm volatile(PINNACE_TILES(__VA_ARGS__)                                                                              \
               : [tiles] "+&r"(tiles), [a] "+&r"(a), [residual] "+&r"(ends.residual), [c] "+&r"(ends.c), [b] "=&r"(b), \
                 [block] "=&r"(block), [left] "=&r"(left), [n] "=&r"(n), [p0] "=&r"(p0), [p1] "=&r"(p1),               \
                 [p2] "=&r"(p2), [p3] "=&r"(p3), [p4] "=&r"(p4), [p5] "=&r"(p5), [p6] "=&r"(p6), [p7] "=&r"(p7)        \
               : [panel] "r"(g.b), [blocks] "r"(g.blocks), [block_count] "r"(g.block_count), [row] "r"(row),           \
                 [a_step] "r"(MR * row), [k] "r"(g.k), [residual_step] "r"(ends.residual_step),                        \
                 [limits] "r"(ends.limits), [c_step] "r"(ends.c_step)                                                  \
               : "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",      \
                 "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26",     \
                 "v27", "v28", "v29", "v30", "v31")
#define PINNACE_OF(rows)                     \
  if constexpr (MR == rows && WIDTH == 16) { \
    PINNACE_ASSEMBLE(rows, 16, "32");        \
  } else if constexpr (MR == rows) {         \
    PINNACE_ASSEMBLE(rows, 8, "16");         \
  }
  PINNACE_OF(1)
  PINNACE_OF(2)
  PINNACE_OF(3)
  PINNACE_OF(4)
  PINNACE_OF(5)
  PINNACE_OF(6)
  PINNACE_OF(7)
  PINNACE_OF(8)
#undef PINNACE_OF
#undef PINNACE_ASSEMBLE
}

/// What is left to do where a panel is not whole or has an activation that is no clamp, which is computed in float32:
/// residual, activation and copy, from `tile`, which is in the nearest cache.
__attribute__((noinline)) void finish(const Rows& g, const uint16_t* tile, int64_t width, int64_t rows, uint16_t* c,
                                      const uint16_t* residual) {
  const auto size = [&](int64_t columns) { return static_cast<size_t>(columns * kBytes); };
  for (int64_t i = 0; i < rows; ++i, tile += width, c += g.c_row) {
    uint16_t sums[16] = {};
    __builtin_memcpy(sums, tile, size(g.columns));
    if (residual) {
      uint16_t add[16] = {};
      __builtin_memcpy(add, residual, size(g.columns));
      for (int j = 0; j < 16; j += 8) {
        vst1q_u16(sums + j, vreinterpretq_u16_f16(vaddq_f16(vreinterpretq_f16_u16(vld1q_u16(sums + j)),
                                                            vreinterpretq_f16_u16(vld1q_u16(add + j)))));
      }
      residual += g.residual_row;
    }
    for (int j = 0; j < g.columns && g.map.kind != UnaryKind::kNone; j += 4) {
      auto* four = reinterpret_cast<F16Bits*>(sums + j);
      Wide::store(four, activate<Wide>(g.map, Wide::load(four)));
    }
    __builtin_memcpy(c, sums, size(g.columns));
  }
}

/// `count` tiles, one below the other.
template <int MR, int WIDTH>
void tiles(const Rows& g, int64_t first, int64_t count) {
  const uint16_t* a = g.a + first * g.a_row;
  uint16_t* c = g.c + first * g.c_row;
  const uint16_t* residual = g.residual ? g.residual + first * g.residual_row : nullptr;
  const bool clamp = g.map.kind == UnaryKind::kRelu || g.map.kind == UnaryKind::kClip;
  if (g.columns == WIDTH && (clamp || g.map.kind == UnaryKind::kNone)) {
    float16_t limits[16];
    for (int j = 0; j < 8; ++j) {
      limits[j] = static_cast<float16_t>(g.map.kind == UnaryKind::kClip ? g.map.p : 0);
      limits[8 + j] = static_cast<float16_t>(g.map.kind == UnaryKind::kClip ? g.map.q : __builtin_inff());
    }
    return run_tiles<MR, WIDTH>(g, count, a,
                                {residual, g.residual_row * kBytes, clamp ? limits : nullptr, c, g.c_row * kBytes});
  }
  for (int64_t tile = 0; tile < count; ++tile) {
    uint16_t sums[MR * WIDTH];
    run_tiles<MR, WIDTH>(g, 1, a, {nullptr, 0, nullptr, sums, WIDTH * kBytes});
    finish(g, sums, WIDTH, MR, c, residual);
    a += MR * g.a_row;
    c += MR * g.c_row;
    if (residual) residual += MR * g.residual_row;
  }
}

/// All M rows, as tiles of MR rows or, to share the remainder out, fewer: 49 rows are 7 times 7.
template <int MR, int WIDTH>
void rows(const Rows& g, int64_t first, int64_t M) {
  const int64_t count = (M + MR - 1) / MR, most = (M + count - 1) / count, full = M - count * (most - 1);
  const auto run = [&](int64_t size, int64_t n) {
    if (n == 0) return;
    if (size == MR) {
      tiles<MR, WIDTH>(g, first, n);
    } else if constexpr (MR > 1) {
      rows<MR - 1, WIDTH>(g, first, size * n);
    }
    first += size * n;
  };
  run(most, full);
  run(most - 1, count - full);
}

void all_rows(const Rows& g, int32_t width) {
  if (g.M < 1) return;
  width == 16 ? rows<8, 16>(g, 0, g.M) : rows<8, 8>(g, 0, g.M);
}

}  // namespace
}  // namespace neon_dotprod

const GemmTiles<uint16_t> gemm_f16_tiles_neon_dotprod = {16, 8, neon_dotprod::all_rows, WeightFormat::kF16};

}  // namespace pinnace::cpu
