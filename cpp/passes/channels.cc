// Weights per output channel, and affine maps that go into them.
#include "passes/channels.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pinnace {
namespace {

/// Weight i belongs to output channel i / inner % channels + channels * (i / outer).
struct Layout {
  int64_t inner, channels, outer;
  int64_t channel(int64_t i) const { return i / inner % channels + channels * (i / outer); }
};

std::optional<Layout> layout_of(const Node& node, const TensorType& w) {
  const int64_t all = w.elements();
  if (w.rank() < 2 || all <= 0) return std::nullopt;
  const int64_t first = w.shape[0].size, second = w.shape[1].size;
  if (node.op == "conv") return Layout{all / first, first, all};
  // [C, M / group, ...]: the channels of a group repeat for each of its C / group inputs.
  if (node.op == "conv_transpose") return Layout{all / first / second, second, all / int_or(node, "group", 1)};
  if (w.rank() != 2) return std::nullopt;
  return node.op == "gemm" && int_or(node, "trans_b", 0) ? Layout{second, first, all} : Layout{1, second, all};
}

double largest_of(DType dtype) {
  return dtype == DType::kF16   ? 65504
         : dtype == DType::kF64 ? std::numeric_limits<double>::max()
                                : static_cast<double>(std::numeric_limits<float>::max()) * (1 - 0x1p-9);
}

bool all_within(std::span<const double> numbers, double largest) {
  return std::all_of(numbers.begin(), numbers.end(), [&](double x) { return std::fabs(x) <= largest; });
}

}  // namespace

int channel_axis(const Rewrite& rewrite, const Node& node) {
  if (node.outputs.size() != 1 || node.inputs.size() < 2) return -1;
  const TensorType& y = rewrite.type(node.outputs[0]);
  int axis = -1;
  if (node.op == "conv" || node.op == "conv_transpose") axis = 1;
  if (node.op == "gemm" || (node.op == "mat_mul" && rewrite.type(node.inputs[1]).rank() > 1)) axis = y.rank() - 1;
  return axis >= 0 && axis < y.rank() && y.shape[static_cast<size_t>(axis)].known() ? axis : -1;
}

Node* open_product(const Rewrite& rewrite, ValueId id) {
  Node* main = rewrite.producer(id);
  if (!main || channel_axis(rewrite, *main) < 0 || !rewrite.inner(id)) return nullptr;
  return is_float_type(rewrite.type(id).dtype) && string_or(*main, "activation", "").empty() ? main : nullptr;
}

std::optional<std::vector<double>> channel_numbers(const Rewrite& rewrite, ValueId id, const TensorType& y, int axis) {
  const auto given = rewrite.numbers(id);
  const TensorType& type = rewrite.type(id);
  if (!given || given->empty() || type.rank() > y.rank()) return std::nullopt;
  const auto channels = static_cast<size_t>(y.shape[static_cast<size_t>(axis)].size);
  for (int i = 0; i < type.rank(); ++i) {
    const int64_t size = type.shape[static_cast<size_t>(i)].size;
    const bool along = i + y.rank() - type.rank() == axis;
    if (size != 1 && !(along && static_cast<size_t>(size) == channels)) return std::nullopt;
  }
  return given->size() == channels ? *given : std::vector<double>(channels, given->front());
}

std::optional<std::vector<double>> bias_numbers(const Rewrite& rewrite, const Node& main, int64_t channels) {
  std::vector<double> bias(static_cast<size_t>(channels), 0.0);
  if (main.inputs.size() < 3 || main.inputs[2] == kNoValue) return bias;
  const TensorType row{DType::kF32, {1, channels}, nullptr};
  auto given = channel_numbers(rewrite, main.inputs[2], row, 1);
  if (!given) return std::nullopt;
  if (main.op == "gemm") {
    for (double& x : *given) x *= float_or(main, "beta", 1);
  }
  return given;
}

Result<bool> fold_affine(Rewrite& rewrite, Node& main, Node& last, std::span<const double> s,
                         std::span<const double> t) {
  auto bias = bias_numbers(rewrite, main, static_cast<int64_t>(t.size()));
  if (!bias) return false;
  const TensorType w = rewrite.type(main.inputs[1]);
  const double largest = largest_of(w.dtype);
  std::optional<std::vector<double>> weights;
  if (!s.empty()) {
    const auto layout = layout_of(main, w);
    weights = rewrite.numbers(main.inputs[1]);
    if (!layout || !weights || !all_within(s, largest)) return false;
    for (size_t i = 0; i < weights->size(); ++i) {
      const auto channel = static_cast<size_t>(layout->channel(static_cast<int64_t>(i)));
      if (channel >= s.size()) return false;
      (*weights)[i] *= s[channel];
    }
    if (!all_within(*weights, largest)) return false;
  }
  for (size_t c = 0; c < t.size(); ++c) (*bias)[c] = (*bias)[c] * (s.empty() ? 1 : s[c]) + t[c];
  if (!all_within(*bias, largest)) return false;
  const std::string base = rewrite.graph().value(last.outputs[0]).name;
  ValueId w_id = main.inputs[1];
  if (weights) {
    PINNACE_ASSIGN(w_id, rewrite.add_constant(base + ".weight", w.dtype, w.shape, *weights));
  }
  PINNACE_ASSIGN(const ValueId bias_id,
                 rewrite.add_constant(base + ".bias", w.dtype, {static_cast<int64_t>(t.size())}, *bias));
  auto attrs = main.attrs;
  rewrite.replace(last, main.op, {main.inputs[0], w_id, bias_id}, std::move(attrs), main.source);
  last.remove_attr("beta");
  rewrite.remove(main);
  return true;
}

}  // namespace pinnace
