// Operators that sum products (conv, conv_transpose, gemm, mat_mul) seen as one number per output channel: which
// weights belong to a channel, and how y * s + t per channel goes into weights and bias.
#pragma once

#include "passes/rewrite.h"

namespace pinnace {

/// The dimension of the output that the bias runs along: 1 for conv and conv_transpose, the last one for gemm and
/// mat_mul with matrices. -1 for other nodes, and where the output's size in it is not known.
int channel_axis(const Rewrite& rewrite, const Node& node);

/// The product that makes `id`, if it may vanish in its reader: a float type, no activation, and `id` is read once.
Node* open_product(const Rewrite& rewrite, ValueId id);

/// One number for each output channel, or one that all share: then there is nothing as long as a size says.
struct PerChannel {
  std::vector<double> numbers;
  double operator[](size_t channel) const { return numbers[numbers.size() == 1 ? 0 : channel]; }
};

/// A constant that broadcasts to `y` and differs along `axis` only; nothing otherwise.
std::optional<PerChannel> channel_numbers(const Rewrite& rewrite, ValueId id, const TensorType& y, int axis);

/// The bias of a product per channel, with gemm's beta, zeros where there is none. Nothing where it is no constant, or
/// differs by row.
std::optional<PerChannel> bias_numbers(const Rewrite& rewrite, const Node& main, int64_t channels);

/// Turns `last` into `main` with weights w[c] * s[c] and bias bias[c] * s[c] + t[c], rounded once, and removes `main`,
/// whose output only `last` reads. An s without numbers leaves the weights, which then need not be constant. False, and
/// nothing done, where weights or bias are no constants, a result would not be finite in their type, the new constants
/// are more than passes may still make, or weights would be lost to underflow: each may be off by the rounding of the
/// largest of its channel, so that one must be a normal number (or the channel as good as dead: less than 2^-40 of the
/// largest weight of all, as training with weight decay leaves many).
Result<bool> fold_affine(Rewrite& rewrite, Node& main, Node& last, const PerChannel& s, const PerChannel& t);

}  // namespace pinnace
