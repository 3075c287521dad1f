// What many rows of columns, pixels of channels, become when they are folded into one, of float32 and of fp16 values (T
// is uint16_t, their bits), compiled once per instruction set. Plain pointers and sizes only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pinnace::cpu {

template <class T>
struct ColumnFolds {
  /// y[c] = the larger (least: the smaller) of y[c] and x[p, c] over pixels; NaN stays.
  void (*extreme)(bool least, const T* x, ptrdiff_t step, int64_t pixels, int64_t channels, T* y);
  /// The same, and at[c] becomes first + p where y[c] becomes x[p, c]; of equal ones the first or `last`. NaN is more
  /// extreme than any number.
  void (*arg_extreme)(bool least, bool last, const T* x, ptrdiff_t step, int64_t pixels, int64_t channels, T* y,
                      int32_t first, int32_t* at);
  /// sums[c] += x[p, c] over pixels.
  void (*sum)(const T* x, ptrdiff_t step, int64_t pixels, int64_t channels, float* sums);
  /// sums[c] += |x[p, c]|
  void (*sum_magnitudes)(const T* x, ptrdiff_t step, int64_t pixels, int64_t channels, float* sums);
  /// sums[c] += (x[p, c] - centre[c])^2
  void (*sum_squares)(const T* x, ptrdiff_t step, int64_t pixels, int64_t channels, const float* centre, float* sums);
};

extern const ColumnFolds<float> column_folds_f32_generic;
#if defined(__x86_64__)
extern const ColumnFolds<float> column_folds_f32_avx2, column_folds_f32_avx512;
#endif
#if defined(__aarch64__) || defined(PINNACE_PACKS_ARM64)
extern const ColumnFolds<uint16_t> column_folds_f16_neon_dotprod;  ///< sum alone
#endif

}  // namespace pinnace::cpu
