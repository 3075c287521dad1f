// float32 matrix tiles for SVE registers of any length: panels have 16 columns, as NEON's do, so that packed weights do
// not depend on the processor; a tile is up to 8 rows by one register of columns, of which a predicate leaves out what
// is beyond the panel. A multiply-add takes one element of a row from a lane of four, which one load spreads over the
// register. Types without a size cannot stand in arrays: rows are spelt out.
#include "backends/cpu/matmul/gemm_f32_tiles.h"
#include "backends/cpu/unary/activation_sve.h"

namespace pinnace::cpu {
namespace sve {
namespace {

// LINE(row) for the rows of a tile, whose number MR is known when it is compiled.
#define PINNACE_EACH_ROW(LINE)  \
  LINE(0)                       \
  if constexpr (MR > 1) LINE(1) \
  if constexpr (MR > 2) LINE(2) \
  if constexpr (MR > 3) LINE(3) \
  if constexpr (MR > 4) LINE(4) \
  if constexpr (MR > 5) LINE(5) \
  if constexpr (MR > 6) LINE(6) \
  if constexpr (MR > 7) LINE(7)
#define PINNACE_FOUR(i)                                      \
  {                                                          \
    const Floats four = svld1rq_f32(every, a + i * g.a_row); \
    s##i = svmla_lane_f32(s##i, b0, four, 0);                \
    s##i = svmla_lane_f32(s##i, b1, four, 1);                \
    s##i = svmla_lane_f32(s##i, b2, four, 2);                \
    s##i = svmla_lane_f32(s##i, b3, four, 3);                \
  }
#define PINNACE_ONE(i)                                     \
  {                                                        \
    s##i = svmla_n_f32_x(every, s##i, b0, a[i * g.a_row]); \
  }
#define PINNACE_END(i)                                                                                        \
  {                                                                                                           \
    const int64_t m = row + i;                                                                                \
    if (g.residual) s##i = svadd_f32_x(stored, s##i, svld1_f32(stored, g.residual + m * g.residual_row + n)); \
    if (clamp) s##i = clamped(stored, s##i, low, high);                                                       \
    if (by_function) s##i = mapped(g.map, stored, s##i);                                                      \
    svst1_f32(stored, g.c + m * g.c_row + n, s##i);                                                           \
  }

/// Rows [row, row + MR), columns from n on, of a panel of `width`.
template <int MR>
void tile(const GemmRowsF32& g, int64_t row, int64_t n, int64_t width) {
  const svbool_t every = svptrue_b32(), some = svwhilelt_b32_s64(n, width), stored = svwhilelt_b32_s64(n, g.columns);
  const Floats bias = svld1_f32(some, g.b + n);
  Floats s0 = bias;
  [[maybe_unused]] Floats s1 = bias, s2 = bias, s3 = bias, s4 = bias, s5 = bias, s6 = bias, s7 = bias;
  const float* b = g.b + width + n;
  for (int64_t block = 0; block < g.block_count; ++block) {
    const float* a = g.a + row * g.a_row + g.blocks[block];
    int64_t k = g.k;
    for (; k >= 4; k -= 4, a += 4, b += 4 * width) {
      const Floats b0 = svld1_f32(some, b), b1 = svld1_f32(some, b + width);
      const Floats b2 = svld1_f32(some, b + 2 * width), b3 = svld1_f32(some, b + 3 * width);
      PINNACE_EACH_ROW(PINNACE_FOUR)
    }
    for (; k > 0; --k, ++a, b += width) {
      const Floats b0 = svld1_f32(some, b);
      PINNACE_EACH_ROW(PINNACE_ONE)
    }
  }
  const bool clamp = g.map.kind == UnaryKind::kRelu || g.map.kind == UnaryKind::kClip;
  const bool by_function = !clamp && g.map.kind != UnaryKind::kNone;
  const float low = g.map.kind == UnaryKind::kClip ? g.map.p : 0;
  const float high = g.map.kind == UnaryKind::kClip ? g.map.q : __builtin_inff();
  PINNACE_EACH_ROW(PINNACE_END)
}

/// All M rows, as tiles of MR rows and one of those that are left.
template <int MR>
void rows(const GemmRowsF32& g, int64_t first, int64_t n, int64_t width) {
  for (; first + MR <= g.M; first += MR) tile<MR>(g, first, n, width);
  if constexpr (MR > 1) {
    if (first < g.M) rows<MR - 1>(g, first, n, width);
  }
}

void all_rows(const GemmRowsF32& g, int32_t width) {
  const auto lanes = static_cast<int64_t>(svcntw());
  for (int64_t n = 0; n < g.columns; n += lanes) rows<8>(g, 0, n, width);
}

}  // namespace
}  // namespace sve

const GemmTilesF32 gemm_f32_tiles_sve = {16, 8, sve::all_rows, WeightFormat::kF32};

}  // namespace pinnace::cpu
