// Down-levelling: what a feature level lacks, made of what it has. One file each, which states how far the result may
// be from the operation that it replaces. x and y are operands of one type and shape unless said otherwise.
#pragma once

#include "backends/nnapi/lowering.h"
#include "backends/nnapi/steps/weights.h"
#include "ops/window.h"

namespace pinnace::nnapi_client {

/// The largest constant that is taken off values and added to them again below feature level 3: a result loses 2^-23 of
/// it, and all of its digits to FLT_MAX.
inline constexpr double kMostTakenOff = 256;

/// min(max(x, low), high) of floats.
Status clip_float(NodeLowering& n, double low, double high, OperandId x, OperandId y);
/// A relu or clip of quantised x and y of the same parameters, those of the node's output.
Status clamp_quantized(NodeLowering& n, const Activation& activation, OperandId x, OperandId y);
/// x where x >= 0, else alpha * x.
Status leaky_relu(NodeLowering& n, double alpha, OperandId x, OperandId y);
/// x * clip(x / 6 + 1 / 2, 0, 1) of floats.
Status hard_swish(NodeLowering& n, OperandId x, OperandId y);
/// x / 2 * (1 + erf(x / sqrt 2)), and its form with tanh.
Status gelu(NodeLowering& n, OperandId x, OperandId y);
Status gelu_tanh(NodeLowering& n, OperandId x, OperandId y);
Status erf(NodeLowering& n, OperandId x, OperandId y);
/// x where x >= 0, else alpha * (exp(x) - 1).
Status elu(NodeLowering& n, double alpha, OperandId x, OperandId y);
/// The larger (smaller) of two operands that broadcast. Below feature level 3 b has to be a constant of the graph, none
/// of its elements beyond kMostTakenOff.
Status extreme(NodeLowering& n, bool larger, OperandId a, OperandId b, OperandId y);
/// [N, r0, K] by [N, K, c1] or their like with more dimensions in front.
Status batch_mat_mul(NodeLowering& n, OperandId a, OperandId b, OperandId y);
/// Pads of a constant, (before, after) per dimension of x.
Status pad_constant(NodeLowering& n, OperandId x, std::span<const int32_t> pads, double value, OperandId y);

/// Mirrored pads without the edge, none longer than x less 1.
Status pad_reflect(NodeLowering& n, OperandId x, std::span<const int32_t> pads, OperandId y);

/// A reduction over dimensions [first, last) of x by one window; y has them with size 1 or without.
Status reduce_by_pool(NodeLowering& n, Op pool, OperandId x, size_t first, size_t last, OperandId y);
/// resize of floats [N, C, H, W] by products with matrices of weights.
Status resize_by_product(NodeLowering& n, OperandId x, OperandId y);

/// A convolution, channels last, that its operation cannot take as it is.
struct Convolution {
  const Window& window;
  const Activation& activation;
  OperandId x, y;
  uint32_t groups, in_channels, out_channels;
  const Gathered& filter;  ///< [M, kh, kw, C / group]
};
/// Beyond this many parts a model of them costs more than it brings.
inline constexpr uint32_t kMostParts = 64;
/// Channels [first, first + count) of x, channels last.
Result<OperandId> channels_of(NodeLowering& n, OperandId x, uint32_t first, uint32_t count);
/// Groups that are neither one nor one per channel.
Status grouped_conv(NodeLowering& n, const Convolution& c);
/// Taps further apart than 1, below feature level 3. One group, or one per channel.
Status dilated_conv(NodeLowering& n, const Convolution& c);
/// Scales per output channel, below feature level 3. One group, or one per channel; taps side by side.
Status per_channel_conv(NodeLowering& n, const Convolution& c);
/// Groups of a transposed convolution; `filter` is that of one, [M / group, kh, kw, C / group].
Status grouped_conv_transpose(NodeLowering& n, const Convolution& c);

}  // namespace pinnace::nnapi_client
