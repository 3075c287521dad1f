// The float32 matrix product that convolutions, gemm and mat_mul share: rows read where they lie, columns packed.
// Compiled once per instruction set. Plain pointers and sizes only, so that no inline function of another header is
// compiled with flags that another processor cannot run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/f32_kernels.h"

namespace pinnace {

/// c[m, n] = map(bias[n] + sum over k of a(m, k) * b(k, n) + residual[m, n]), for n in one panel of packed columns.
///
/// Rows are never gathered. Row m begins at a + m * a_row; its K = block_count * k elements lie in blocks of k, block i
/// `blocks[i]` elements from the row's begin:
///   1x1 convolution of pixels   a_row = pitch * stride, k = channels, one block at 0
///   k x k convolution           one block for each tap, or for each kernel row where its pixels touch
/// Sums run over ascending blocks and k, started at bias, whatever M is: splitting M changes no bit.
struct GemmRowsF32 {
  const float* a;
  ptrdiff_t a_row;
  const ptrdiff_t* blocks;
  int64_t block_count, k;
  const float* b;  ///< a panel: [1 + K][width], the first row is the bias
  float* c;
  ptrdiff_t c_row;
  const float* residual;  ///< null: none
  ptrdiff_t residual_row;
  int64_t M;
  int32_t columns;  ///< of c (and residual) in this panel: 1 to its width
  MapF32 map;
};

/// Columns are packed in panels of `nr`, the last one as wide as is left, rounded up to `step`.
struct GemmTilesF32 {
  int32_t nr, step;
  /// Width of a panel of `columns` columns, 1 to nr: nr, or a multiple of step.
  void (*rows)(const GemmRowsF32& g, int32_t width);
};

extern const GemmTilesF32 gemm_f32_tiles_generic;
#if defined(__x86_64__)
extern const GemmTilesF32 gemm_f32_tiles_avx2, gemm_f32_tiles_avx512;
#endif

}  // namespace pinnace
