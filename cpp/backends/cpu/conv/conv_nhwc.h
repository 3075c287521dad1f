// What the convolutions over NHWC-packed tensors share: their geometry and the border that they read.
#pragma once

#include "backends/cpu/matmul/gemm_f32.h"
#include "ops/convolution.h"

namespace pinnace::cpu {

/// Geometry of a convolution over NHWC-packed tensors; channels per group.
struct NhwcConv {
  Window window;
  int64_t groups, in_channels, out_channels;
  bool touching;  ///< the pixels of a kernel row are one block
  int64_t blocks() const { return touching ? window.kernel[1] : window.kernel[1] * window.kernel[2]; }
  int64_t block() const { return touching ? window.kernel[2] * in_channels : in_channels; }
  int64_t K() const { return blocks() * block(); }
};
/// The node's types and window were checked by the shape rule. bias: which input it is, -1: the operator has none.
NhwcConv nhwc_conv(const KernelNode& node, int bias = 2);

/// True if the node is a convolution of NHWC-packed tensors, whatever its weights: shapes not empty, pads of at
/// most 64.
bool nhwc_conv_takes(const KernelNode& node, int bias);
inline bool nhwc_conv_takes(const KernelNode& node) {
  return nhwc_conv_takes(node, 2);
}

/// Elements of 8 bits of a block, those that fill up quads included.
inline int64_t block_quads(const NhwcConv& c) {
  const int64_t pixel = (c.in_channels + 3) / 4;
  return c.touching ? c.window.kernel[2] * pixel : pixel;
}

/// Zeros (quantised: zero points) that taps read beyond the input.
Border conv_border(const Window& w);
Border conv_border(const KernelNode& node);
/// Rows of input 0 that a row of the output is made of.
RowWindow conv_reads_rows(const KernelNode& node);

/// Whether outputs are sorted by the taps that they read within the image, down and across, so that other taps are not
/// multiplied and no border is needed: where that saves a fifth, as wide dilations do. x86-64 alone.
struct Inside {
  bool down, across;
};
Inside inside_of(const Window& w);
/// In one dimension: outputs [begin, end) read taps [first, last) within the image.
struct TapRange {
  int64_t begin, end, first, last;
};
/// Calls f(TapRange) for all outputs of dimension d in their order; one range of all taps unless `inside`.
template <class F>
void each_tap_range(const Window& w, size_t d, bool inside, F f) {
  if (!inside) return f(TapRange{0, w.out[d], 0, w.kernel[d]});
  const auto taps_of = [&](int64_t o) {
    const int64_t at = o * w.stride[d] - w.before[d], step = w.dilation[d];
    const int64_t first = at >= 0 ? 0 : std::min(w.kernel[d], (-at + step - 1) / step);
    const int64_t last = at >= w.in[d] ? 0 : std::min(w.kernel[d], (w.in[d] - 1 - at) / step + 1);
    return TapRange{o, o + 1, first, std::max(first, last)};
  };
  TapRange range = taps_of(0);
  for (int64_t o = 1; o < w.out[d]; ++o) {
    const TapRange next = taps_of(o);
    if (next.first != range.first || next.last != range.last) {
      f(range);
      range.begin = o;
    }
    range = {range.begin, o + 1, next.first, next.last};
  }
  f(range);
}

/// Weights and biases as panels of `tiles`: [group][panel][bias, then taps in order of (ky, kx, channel)][column].
int64_t conv_packed_bytes(const KernelNode& node, const GemmTilesF32& tiles);
void conv_pack(const KernelNode& node, const GemmTilesF32& tiles, float* to);

/// What is added to the result; all zero where there is none.
template <class T>
NhwcOf<T> residual_of(const Fusion& fusion) {
  if (!fusion.residual) return {};
  const FusedView& addend = fusion.residual->addend;
  return nhwc_of<T>(addend.view, addend.layout);
}

/// Sums of halves round after every product: about sqrt(K) times where signs are mixed, at most K times 2^-12.
template <const auto& isa>
constexpr float kSumError = std::is_same_v<ElementOf<isa>, float> ? 0 : 0x1p-8f;

/// Input 2, which is constant, or null.
inline const float* bias_of(const KernelNode& node) {
  return node.has_input(2) ? static_cast<const float*>(node.input_data(2)) : nullptr;
}

}  // namespace pinnace::cpu
