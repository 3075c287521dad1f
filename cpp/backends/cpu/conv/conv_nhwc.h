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
/// The node's types and window were checked by the shape rule.
NhwcConv nhwc_conv(const KernelNode& node);

/// True if the node is a convolution of NHWC-packed tensors, whatever its weights: shapes not empty, pads of at
/// most 64.
bool nhwc_conv_takes(const KernelNode& node);

/// Zeros (quantised: zero points) that taps read beyond the input.
Border conv_border(const KernelNode& node);
/// Rows of input 0 that a row of the output is made of.
RowWindow conv_reads_rows(const KernelNode& node);

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
