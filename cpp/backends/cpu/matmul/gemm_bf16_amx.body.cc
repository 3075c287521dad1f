// Matrix products of pairs of bfloat16 on tile registers (gemm_f32_tiles.h, tile_product.h). A step sums the even and
// the odd elements of a row apart, so that results differ in their last bits from those of dot products of pairs; they
// do not depend on how rows are cut.
#include "backends/cpu/matmul/amx.h"
#include "backends/cpu/matmul/gemm_f32_finish.h"
#include "backends/cpu/matmul/tile_product.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

struct Pairs {
  template <class Tiles, int SUM, int A, int B>
  static inline void dot() {
    Tiles::template dot_bf16<SUM, A, B>();
  }
};

void rows(const GemmRowsF32& g, int32_t width) {
  if (g.M < 1 || g.runs < 1) return;
  using V = Wide;
  using T = typename V::T;
  constexpr int kRegisters = kSumColumns / V::kLanes;
  const bool clamp = g.map.kind == UnaryKind::kRelu || g.map.kind == UnaryKind::kClip;
  const bool simple = clamp || g.map.kind == UnaryKind::kNone;
  const T low = V::all(g.map.kind == UnaryKind::kClip ? g.map.p : clamp ? 0.0f : -__builtin_inff());
  const T high = V::all(g.map.kind == UnaryKind::kClip ? g.map.q : __builtin_inff());
  const int64_t bytes = 4 * width * (1 + g.block_count * g.k);
  const TilePanel p{.a_row = 4 * g.a_row,
                    .blocks = g.blocks,
                    .block_unit = 4,
                    .block_count = g.block_count,
                    .elements = g.k,
                    .start = g.b,
                    .weights = g.b + width,
                    .width = width,
                    .next = reinterpret_cast<const char*>(g.b) + bytes,
                    .bytes = bytes};
  const auto finish_tile = [&](const void* sums, int64_t run, int64_t row, int64_t count) {
    const auto* tile = static_cast<const float*>(sums);
    float* const c = g.c + run * g.c_run + row * g.c_row;
    const float* const residual = g.residual ? g.residual + run * g.residual_run + row * g.residual_row : nullptr;
    if (!simple) return finish<V, kRegisters>(g, tile, count, c, residual);
    finish_by<V, kRegisters>(g, tile, count, c, residual, [&](T x) { return V::at_most(V::at_least(x, low), high); });
  };
  const auto ahead = [&](int64_t run, int64_t first, int64_t rows) {
    const float* c = g.c + run * g.c_run + first * g.c_row;
    for (int64_t i = 0; i < rows; ++i, c += g.c_row) {
      for (int32_t j = 0; j < g.columns; j += 16) __builtin_prefetch(c + j, 1);
    }
    if (!g.residual) return;
    const float* residual = g.residual + run * g.residual_run + first * g.residual_row;
    for (int64_t i = 0; i < rows; ++i, residual += g.residual_row) {
      for (int32_t j = 0; j < g.columns; j += 16) __builtin_prefetch(residual + j);
    }
  };
  for_tiles<Pairs>(p, reinterpret_cast<const uint8_t*>(g.a), 4 * g.a_run, g.M, g.runs, ahead, finish_tile);
}

}  // namespace
}  // namespace PINNACE_ISA

GemmRowsLoopBf16* const PINNACE_FOR_ISA(gemm_bf16_amx) = PINNACE_ISA::rows;

}  // namespace pinnace::cpu
