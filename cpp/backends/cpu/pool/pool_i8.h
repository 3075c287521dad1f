// Pooling of 8-bit quantised values, compiled once per instruction set, to the same bits; ARM64 has one set. Plain
// pointers and sizes only.
#pragma once

#include "backends/cpu/simd/stored_i8.h"

namespace pinnace::cpu {

struct PoolLoopsI8 {
  /// y[c] = the largest x[i, j, c] of a window of rows and columns, not less than 0. Registers are read whole.
  void (*maximum)(const uint8_t* x, ptrdiff_t row, int64_t rows, ptrdiff_t column, int64_t columns, uint8_t* y,
                  int64_t channels);
  /// sums[c] += x[p, c] over pixels.
  void (*sum)(const uint8_t* x, ptrdiff_t step, int64_t pixels, int64_t channels, int32_t* sums);
  /// y[i] = the mean of `count` numbers whose sum less count zero points is sums[i] - less.
  void (*means)(const int32_t* sums, int32_t less, float x_scale, float count, RealI8 y_real, uint8_t flip, uint8_t* y,
                int64_t n);
};

extern const PoolLoopsI8 pool_loops_i8_generic;
#if defined(__x86_64__)
extern const PoolLoopsI8 pool_loops_i8_avx2, pool_loops_i8_avx512_vnni;
#endif

}  // namespace pinnace::cpu
