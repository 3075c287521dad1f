// Which loops products on tile registers take: the processor's tiles, their model in memory, or, where tiles would be
// mostly empty, the next lower set's, whose packed weights are the same.
#include "backends/cpu/matmul/amx.h"

#if defined(__x86_64__)
#include <atomic>

#include "backends/cpu/cast/half_f32.h"
#include "backends/cpu/simd/tile_losses.h"
#include "base/log.h"

namespace pinnace::cpu {
namespace {

std::atomic<bool> modelled{false};
std::atomic<int64_t> losses_each{0}, losses{0};

/// Steps of fewer elements leave most of a tile empty.
constexpr int64_t kLeastDepth = 4;

void rows_i8(const GemmRowsI8& g, int32_t width) {
  if (tiles_modelled()) return gemm_i8_amx_generic(g, width);
  if (tile_depth(g.quads) < kLeastDepth || width == 8 || g.M < 4) return gemm_i8_tiles_avx512_vnni.rows(g, width);
  gemm_i8_amx_amx_int8(g, width);
}

/// What is decided here must not depend on M: results are the same however rows are cut.
void rows_bf16(const GemmRowsF32& g, int32_t width) {
  if (tiles_modelled()) return gemm_bf16_amx_generic(g, width);
  if (tile_depth(g.k) >= kLeastDepth) return gemm_bf16_amx_amx_bf16(g, width);
  GemmRowsF32 one = g;
  one.runs = 1;
  for (int64_t run = 0; run < g.runs; ++run) {
    gemm_f32_tiles_bf16_avx512_bf16.rows(one, width);
    one.a += g.a_run;
    one.c += g.c_run;
    if (one.residual) one.residual += g.residual_run;
  }
}

const HalfF32Kernels& half_here() {
  return tiles_modelled() ? half_f32_kernels_generic : half_f32_kernels_avx512;
}

}  // namespace

void model_tiles(bool modelled_) {
  modelled.store(modelled_, std::memory_order_relaxed);
}
bool tiles_modelled() {
  return modelled.load(std::memory_order_relaxed);
}
void lose_model_tiles(int64_t each) {
  losses_each.store(each, std::memory_order_relaxed);
}
bool model_loses_tiles() {
  static thread_local int64_t products = 0;
  const int64_t each = losses_each.load(std::memory_order_relaxed);
  return each > 0 && ++products % each == 0;
}

void note_lost_tiles() {
  if (losses.fetch_add(1, std::memory_order_relaxed) > 0) return;
  PINNACE_LOG_WARN(
      "this machine lost AMX tiles while a product was computed, as virtual machines may; what is lost is "
      "computed again. PINNACE_CPU_ISA=avx512_bf16 does without tiles");
}
int64_t lost_tiles() {
  return losses.load(std::memory_order_relaxed);
}

/// What rounds rows for the tiles: whatever the processor, where these are modelled.
const HalfF32Kernels half_f32_kernels_amx_bf16 = {
    [](HalfKind kind, const uint16_t* from, int64_t count, float* to) { half_here().widen(kind, from, count, to); },
    [](HalfKind kind, const float* from, int64_t count, uint16_t* to) { half_here().narrow(kind, from, count, to); },
    [](HalfKind kind, float* x, int64_t count) { half_here().round(kind, x, count); }};

const GemmTilesI8 gemm_i8_tiles_amx_int8 = {32, 8, rows_i8, 0, 4, true};
const GemmTilesF32 gemm_f32_tiles_bf16_amx_bf16 = {32, 8, rows_bf16, WeightFormat::kBf16Pairs, true};

}  // namespace pinnace::cpu
#endif
