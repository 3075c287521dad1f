// The loops over images (channels last) of float32, and of halves (T is uint16_t, their bits), compiled once per
// instruction set. Plain pointers and sizes only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/unary/f32_kernels.h"

namespace pinnace::cpu {

/// One or two rows of outputs of a depthwise convolution, all channels.
///   x        the first tap's first pixel; columns of an output stand stride_x pixels apart
///   weights  [channels / lanes][1 + kernel_h * kernel_w][lanes], the first register is the bias
/// Sums run over ascending kernel rows, then columns, in one row as in two.
template <class T>
struct DepthwiseRows {
  const T* x;
  ptrdiff_t pitch;    ///< between pixels of x
  ptrdiff_t tap_row;  ///< between kernel rows: dilation_y rows of x
  const T* weights;
  T* y;
  ptrdiff_t y_pitch, y_row;
  int64_t channels;  ///< rounded up to 8, or to 4 where weights have 4 lanes
  int64_t out_w;
  int32_t kernel_h, kernel_w, stride_x, dilation_x;
  int32_t rows;  ///< 2 only where two_rows() says so; the second row's x is stride_x tap rows below
  MapF32 map;
};
using DepthwiseRowsF32 = DepthwiseRows<float>;

/// One row of outputs of a max pool, all channels. Only taps inside x: `rows` of them down, the first at x; across,
/// output o has taps [first(o), last(o)) that start at column o * stride_x - before_x.
template <class T>
struct MaxPoolRow {
  const T* x;         ///< column 0 of the first row
  ptrdiff_t pitch;    ///< between pixels of x
  ptrdiff_t tap_row;  ///< between kernel rows: dilation_y rows of x
  T* y;
  ptrdiff_t y_pitch;
  int64_t channels, in_w, out_w;
  int64_t rows, kernel_w, stride_x, dilation_x, before_x;
};
using MaxPoolRowF32 = MaxPoolRow<float>;

template <class T>
struct ImageKernels {
  int32_t lanes;  ///< of depthwise weights: 16, 8 (two registers on ARM64) or 4; channels of a pixel are padded to 8
  /// True if depthwise_rows takes two rows of such a kernel at a time: less is read twice.
  bool (*two_rows)(int32_t kernel_h, int32_t kernel_w, int32_t stride);
  void (*depthwise_rows)(const DepthwiseRows<T>&);
  /// y[p, c] = a[p, c] op b[p, c]; steps from pixel to pixel in elements, 0 repeats a pixel. y may be a or b.
  void (*binary)(BinaryKind kind, const T* a, ptrdiff_t a_step, const T* b, ptrdiff_t b_step, T* y, ptrdiff_t y_step,
                 int64_t pixels, int64_t channels);
  /// NaN among the taps gives NaN; no taps give -inf.
  void (*max_pool_row)(const MaxPoolRow<T>&);
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
  /// y[p, c] = (x[p, c] - centre[c]) * factor[c] + bias[c]; y may be x.
  void (*affine)(const T* x, ptrdiff_t x_step, T* y, ptrdiff_t y_step, int64_t pixels, int64_t channels,
                 const float* centre, const float* factor, const float* bias);
};
using ImageF32Kernels = ImageKernels<float>;

extern const ImageF32Kernels image_f32_kernels_generic;
#if defined(__x86_64__)
extern const ImageF32Kernels image_f32_kernels_avx2, image_f32_kernels_avx512;
#endif
#if defined(PINNACE_PACKS_ARM64)
extern const ImageF32Kernels image_f32_kernels_neon;
#endif

}  // namespace pinnace::cpu
