// The 8-bit loops over images (channels last, unsigned) and over dense values, compiled once per instruction set, to
// the same bits. Plain pointers and sizes only.
#pragma once

#include "backends/cpu/gemm_i8_tiles.h"

namespace pinnace {

/// One or two rows of outputs of a depthwise convolution, all channels.
///
/// Four rows of input make a quad of each channel, so that one dot product does four taps of a column; where one quad
/// holds the taps of two output rows, they share it with two sets of weights. Channels come in chunks of 64, 32 or 16,
/// as many as the set's registers hold and are left; lane l of register v of a chunk is channel 16 (l / 4) + 4 v + l %
/// 4, which is what unpacking bytes gives and packing takes back.
///   weights  for each chunk: int32 bias[4][lanes], float m[4][lanes], quads int8[sets][groups][kernel_w][4][lanes][4]
struct DepthwiseRowsI8 {
  const uint8_t* x;   ///< the first tap's pixel of the first output
  ptrdiff_t pitch;    ///< between pixels of x
  ptrdiff_t tap_row;  ///< between rows of taps
  int32_t tap_rows;   ///< that are read: of one output row, or of both
  const std::byte* weights;
  uint8_t* y;
  ptrdiff_t y_pitch, y_row;
  int64_t channels;  ///< a multiple of 16
  int64_t out_w;
  int32_t kernel_w, stride_x, dilation_x;
  int32_t groups;  ///< quads of rows
  int32_t sets;    ///< of weights: 1 or 2
  int32_t rows;    ///< of outputs, at most `sets`
  bool large;      ///< products of sums and multipliers may be 2^31 or more, which int32 cannot hold
  StoreI8 store;
};
/// Outputs that depthwise_rows computes from one strip of unpacked columns, and how many columns times groups it holds.
inline constexpr int64_t kDepthwiseStrip = 32, kDepthwiseColumns = 256;

/// Channels of the chunk that begins at c.
static constexpr int64_t depthwise_chunk(int64_t c, int64_t channels, int64_t widest) {
  while (c + widest > channels) widest /= 2;
  return widest;
}

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

struct ImageI8Kernels {
  int32_t widest;             ///< chunk of depthwise channels: 64, 32 or 16
  int32_t activation_offset;  ///< what depthwise activations are taken less, for which packed biases make up
  void (*depthwise_rows)(const DepthwiseRowsI8&);
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
#if defined(__aarch64__) || defined(PINNACE_PACKS_ARM64)
extern const ImageI8Kernels image_i8_kernels_neon_dotprod, image_i8_kernels_neon_i8mm;
#endif

}  // namespace pinnace
