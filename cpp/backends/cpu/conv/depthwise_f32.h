// Depthwise convolutions over NHWC-packed tensors, of float32 and of halves (T is uint16_t, their bits), compiled
// once per instruction set. Plain pointers and sizes only.
#pragma once

#include "backends/cpu/unary/activation_f32.h"

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
  UnaryF32 map;
};
using DepthwiseRowsF32 = DepthwiseRows<float>;

template <class T>
struct DepthwiseLoops {
  int32_t lanes;  ///< of depthwise weights: 16, 8 (two registers on ARM64) or 4; channels of a pixel are padded to 8
  /// True if rows() takes two rows of such a kernel at a time: less is read twice.
  bool (*two_rows)(int32_t kernel_h, int32_t kernel_w, int32_t stride);
  void (*rows)(const DepthwiseRows<T>&);
};

extern const DepthwiseLoops<float> depthwise_loops_f32_generic;
#if defined(__x86_64__)
extern const DepthwiseLoops<float> depthwise_loops_f32_avx2, depthwise_loops_f32_avx512;
#endif
#if defined(__aarch64__) || defined(PINNACE_PACKS_ARM64)
extern const DepthwiseLoops<uint16_t> depthwise_loops_f16_neon_dotprod;
#endif
#if defined(PINNACE_PACKS_ARM64)
extern const DepthwiseLoops<float> depthwise_loops_f32_neon;
#endif

}  // namespace pinnace::cpu
