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

/// A constant that broadcasts to `y` and differs along `axis` only, as one number per index of it; nothing otherwise.
std::optional<std::vector<double>> channel_numbers(const Rewrite& rewrite, ValueId id, const TensorType& y, int axis);

/// The bias of a product per channel, with gemm's beta, zeros where there is none. Nothing where it is no constant, or
/// differs by row.
std::optional<std::vector<double>> bias_numbers(const Rewrite& rewrite, const Node& main, int64_t channels);

/// Turns `last` into `main` with weights w[c] * s[c] and bias bias[c] * s[c] + t[c], rounded once, and removes `main`,
/// whose output only `last` reads. An empty s leaves the weights, which then need not be constant. False, and nothing
/// done, where weights or bias are no constants, or a result would not be finite in their type.
Result<bool> fold_affine(Rewrite& rewrite, Node& main, Node& last, std::span<const double> s,
                         std::span<const double> t);

}  // namespace pinnace
