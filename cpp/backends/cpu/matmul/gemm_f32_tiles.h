// The float32 matrix product that convolutions, gemm and mat_mul share: rows read where they lie, columns packed; and
// that of fp16 values (T is uint16_t, their bits), which convolutions use. Compiled once per instruction set. Plain
// pointers and sizes only, so that no inline function of another header is compiled with flags that another processor
// cannot run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/unary/activation_f32.h"

namespace pinnace::cpu {

/// c[m, n] = map(bias[n] + sum over k of a(m, k) * b(k, n) + residual[m, n]), for n in one panel of packed columns.
///
/// Rows are never gathered. Row m begins at a + m * a_row; its K = block_count * k elements lie in blocks of k, block i
/// `blocks[i]` elements from the row's begin:
///   1x1 convolution of pixels   a_row = pitch * stride, k = channels, one block at 0
///   k x k convolution           one block for each tap, or for each kernel row where its pixels touch
/// Sums run over ascending blocks and k, started at bias, whatever M is: splitting M changes no bit.
template <class T>
struct GemmRows {
  const T* a;
  ptrdiff_t a_row;
  const ptrdiff_t* blocks;
  int64_t block_count, k;
  const T* b;  ///< a panel: a row of `width` numbers, the bias, then [K][width] weights
  T* c;
  ptrdiff_t c_row;
  const T* residual;  ///< null: none
  ptrdiff_t residual_row;
  int64_t M;
  /// Elements from run to run of M rows, of which there are several only where GemmTiles::takes_runs.
  int64_t runs = 1;
  ptrdiff_t a_run = 0, c_run = 0, residual_run = 0;
  int32_t columns;  ///< of c (and residual) in this panel: 1 to its width
  UnaryF32 map;
  /// x86-64: not null where only some of the panel's weights are multiplied: block i's begin with row weight_rows[i] of
  /// its panel_rows.
  const ptrdiff_t* weight_rows;
  int64_t panel_rows;
};
using GemmRowsF32 = GemmRows<float>;

/// How weights stand in a panel. Sums are of the type of the rows, whatever they are.
enum class WeightFormat : int32_t {
  kF32,
  kF16,        ///< two bytes, widened as they are read
  kBf16,       ///< the same
  kBf16Pairs,  ///< [K / 2][width] pairs of bfloat16, elements 2k and 2k + 1 of a column; rows are such pairs too
};

/// Columns are packed in panels of `nr`, the last one as wide as is left, rounded up to `step`. With kBf16Pairs rows
/// are read as pairs of bfloat16 in the place of floats: a_row, blocks and k of GemmRowsF32 count pairs. Denormal
/// numbers count as zeros there.
template <class T>
struct GemmTiles {
  int32_t nr, step;
  /// Width of a panel of `columns` columns, 1 to nr: nr, or a multiple of step.
  void (*rows)(const GemmRows<T>& g, int32_t width);
  WeightFormat format;
  bool takes_runs = false;  ///< several runs in one call
};
using GemmTilesF32 = GemmTiles<float>;

extern const GemmTilesF32 gemm_f32_tiles_generic, gemm_f32_tiles_f16_generic, gemm_f32_tiles_bf16_generic;
#if defined(__x86_64__)
extern const GemmTilesF32 gemm_f32_tiles_avx2, gemm_f32_tiles_f16_avx2, gemm_f32_tiles_bf16_avx2;
extern const GemmTilesF32 gemm_f32_tiles_avx512, gemm_f32_tiles_f16_avx512, gemm_f32_tiles_bf16_avx512;
extern const GemmTilesF32 gemm_f32_tiles_bf16_avx512_bf16, gemm_f32_tiles_bf16_amx_bf16;
#endif
#if defined(__aarch64__) || defined(PINNACE_PACKS_ARM64)
extern const GemmTilesF32 gemm_f32_tiles_sve;
extern const GemmTiles<uint16_t> gemm_f16_tiles_neon_dotprod;
#endif
#if defined(PINNACE_PACKS_ARM64)
extern const GemmTilesF32 gemm_f32_tiles_neon, gemm_f32_tiles_f16_neon, gemm_f32_tiles_bf16_neon;
#endif

}  // namespace pinnace::cpu
