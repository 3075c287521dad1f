// Rows of floats that are rounded to unsigned bytes by themselves, and sums of products of such bytes that become
// floats again: the loops beside the product of mat_mul_rounded_rows.cc, compiled once per instruction set of x86-64,
// to the same bits. Plain pointers and sizes only.
#pragma once

#include "backends/cpu/simd/stored_i8.h"

namespace pinnace::cpu {

/// y[m, n] = (sums[m, n] - zeros[m] * column_sums[n]) * columns[n] * rows[m] + bias[n], between low and high: integers
/// modulo 2^32, floats rounded after each step. What stands for columns, and a row of sums, is read in whole registers.
struct ScaledSums {
  const int32_t* sums;
  ptrdiff_t sums_row;
  const int32_t *zeros, *column_sums;
  const float *rows, *columns;
  const float* bias;  ///< or null
  float low, high;
  float* y;
  ptrdiff_t y_row;
  int64_t M, N;
};

struct RoundedRowsLoops {
  /// The least and the largest of n numbers, both NaN where one is NaN.
  void (*range)(const float* x, int64_t n, float* least, float* largest);
  void (*scale)(const ScaledSums& s);
};

#if defined(__x86_64__)
extern const RoundedRowsLoops rounded_rows_loops_avx2, rounded_rows_loops_avx512_vnni;
#endif

}  // namespace pinnace::cpu
