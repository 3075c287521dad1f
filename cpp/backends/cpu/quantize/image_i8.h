// The 8-bit loops over images (channels last, unsigned) and over dense values that have no products of bytes, compiled
// once per instruction set, to the same bits. Plain pointers and sizes only.
#pragma once

#include "backends/cpu/matmul/gemm_i8_tiles.h"

namespace pinnace::cpu {

enum class BinaryI8 : int32_t { kAdd, kSub, kMul };

/// y[p, c] = a[p, c] op b[p, c] in float32, quantised. Steps from pixel to pixel and from channel to channel (0 or 1),
/// 0 repeats. All operands are stored signed (flip 0x80) or unsigned (0): bytes exclusive-or `flip` count as unsigned.
/// y may be a or b.
struct BinaryRowsI8 {
  BinaryI8 op;
  const uint8_t *a, *b;
  ptrdiff_t a_step, b_step;
  int32_t a_channel, b_channel;
  RealI8 a_real, b_real, y_real;
  uint8_t* y;
  ptrdiff_t y_step;
  int64_t pixels, channels;
  uint8_t flip;
  StoreI8 store;  ///< zero is y_real.zero
};

/// ARM64 has one set: none of its later instructions does these faster.
struct ImageI8Kernels {
  void (*binary)(const BinaryRowsI8&);
  /// y[c] = the largest x[i, j, c] of a window of rows and columns, not less than 0. Registers are read whole.
  void (*maximum)(const uint8_t* x, ptrdiff_t row, int64_t rows, ptrdiff_t column, int64_t columns, uint8_t* y,
                  int64_t channels);
  /// sums[c] += x[p, c] over pixels.
  void (*sum)(const uint8_t* x, ptrdiff_t step, int64_t pixels, int64_t channels, int32_t* sums);
  /// y[i] = the mean of `count` numbers whose sum less count zero points is sums[i] - less.
  void (*means)(const int32_t* sums, int32_t less, float x_scale, float count, RealI8 y_real, uint8_t flip, uint8_t* y,
                int64_t n);
  /// y[i] = x[i] / scale, rounded and stored; NaN gives the zero point.
  void (*quantize)(const float* x, RealI8 real, uint8_t flip, uint8_t* y, int64_t n);
  /// The same of 1 to 4 planes that lie `plane` apart: four bytes for each pixel, `pitch` apart, unsigned.
  void (*quantize_quads)(const float* x, ptrdiff_t plane, int32_t planes, RealI8 real, uint8_t* y, ptrdiff_t pitch,
                         int64_t n);
  /// y[i] = (x[i] ^ flip - zero) * scale
  void (*dequantize)(const uint8_t* x, RealI8 real, uint8_t flip, float* y, int64_t n);
};

extern const ImageI8Kernels image_i8_kernels_generic;
#if defined(__x86_64__)
extern const ImageI8Kernels image_i8_kernels_avx2, image_i8_kernels_avx512_vnni;
#endif

}  // namespace pinnace::cpu
