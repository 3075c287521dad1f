// The 8-bit depthwise convolution of NHWC-packed tensors (unsigned), compiled once per instruction set, to the same
// bits. Plain pointers and sizes only.
#pragma once

#include "backends/cpu/matmul/gemm_i8_tiles.h"

namespace pinnace::cpu {

/// One or two rows of outputs of a depthwise convolution, all channels.
///
/// Four rows of input make a quad of each channel, so that one dot product does four taps of a column; where one quad
/// holds the taps of two output rows, they share it with two sets of weights. Channels come in chunks of 64, 32 or 16,
/// as many as four registers of the instruction set hold and are left; lane l of register v of a chunk is channel
/// 16 (l / 4) + 4 v + l % 4, which is what unpacking bytes gives and packing takes back.
///   weights  for each chunk: int32 bias[4][lanes], float m[4][lanes],
///            quads int8[weight_sets][row_quads][kernel_w][4][lanes][4]
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
  int32_t row_quads;    ///< quads of rows of taps
  int32_t own_quads;    ///< row_quads, or a part of it where the same rows come again: weights of 9 bits as some of 8
  int32_t weight_sets;  ///< 1 or 2
  int32_t rows;         ///< of outputs, at most `weight_sets`
  bool large;           ///< products of sums and multipliers may be 2^31 or more, which int32 cannot hold
  StoreI8 store;
};
/// Outputs that depthwise_rows computes from one block of unpacked columns; columns times row quads that a block holds.
inline constexpr int64_t kDepthwiseBlock = 32, kDepthwiseColumns = 256;

/// Channels of the chunk that begins at c.
static constexpr int64_t depthwise_chunk(int64_t c, int64_t channels, int64_t widest) {
  while (c + widest > channels) widest /= 2;
  return widest;
}

struct DepthwiseI8Kernels {
  int32_t widest;             ///< chunk of channels: 64, 32 or 16
  int32_t activation_offset;  ///< what activations are taken less, for which packed biases make up
  void (*rows)(const DepthwiseRowsI8&);
};

extern const DepthwiseI8Kernels depthwise_i8_kernels_generic;
#if defined(__x86_64__)
extern const DepthwiseI8Kernels depthwise_i8_kernels_avx2, depthwise_i8_kernels_avx_vnni,
    depthwise_i8_kernels_avx512_vnni;
#endif
#if defined(__aarch64__) || defined(PINNACE_PACKS_ARM64)
extern const DepthwiseI8Kernels depthwise_i8_kernels_neon_dotprod, depthwise_i8_kernels_neon_i8mm;
#endif

}  // namespace pinnace::cpu
