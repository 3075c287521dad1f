// Weights per output channel, and affine maps that go into them.
#include "passes/channels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/element.h"

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

double least_normal(DType dtype) {
  return dtype == DType::kF16   ? 0x1p-14
         : dtype == DType::kF64 ? std::numeric_limits<double>::min()
                                : static_cast<double>(std::numeric_limits<float>::min());
}

/// May the weights w, times s, be stored as T? See fold_affine.
template <class T>
bool scales(std::span<const T> w, const Layout& layout, const PerChannel& s, size_t channels, DType dtype) {
  constexpr double kDead = 0x1p-40;
  const double limit = largest_of(dtype);
  std::vector<double> most(channels, -1);  // -1: no product that should not be 0
  for (size_t i = 0; i < w.size(); ++i) {
    const auto channel = static_cast<size_t>(layout.channel(static_cast<int64_t>(i)));
    if (channel >= channels) return false;
    const double weight = static_cast<double>(widen(w[i])), product = weight * s[channel];
    if (!(std::fabs(product) <= limit)) return false;
    if (weight != 0 && s[channel] != 0) most[channel] = std::max(most[channel], std::fabs(product));
  }
  const double all = *std::max_element(most.begin(), most.end());
  return std::all_of(most.begin(), most.end(),
                     [&](double x) { return x < 0 || x >= least_normal(dtype) || x < kDead * all; });
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

std::optional<PerChannel> channel_numbers(const Rewrite& rewrite, ValueId id, const TensorType& y, int axis) {
  const TensorType& type = rewrite.type(id);
  if (type.rank() > y.rank()) return std::nullopt;
  const int64_t channels = y.shape[static_cast<size_t>(axis)].size;
  for (int i = 0; i < type.rank(); ++i) {
    const int64_t size = type.shape[static_cast<size_t>(i)].size;
    const bool along = i + y.rank() - type.rank() == axis;
    if (size != 1 && !(along && size == channels)) return std::nullopt;
  }
  auto given = rewrite.numbers(id);
  if (!given || given->empty()) return std::nullopt;
  return PerChannel{std::move(*given)};
}

std::optional<PerChannel> bias_numbers(const Rewrite& rewrite, const Node& main, int64_t channels) {
  if (main.inputs.size() < 3 || main.inputs[2] == kNoValue) return PerChannel{{0.0}};
  const TensorType row{DType::kF32, {1, channels}, nullptr};
  auto given = channel_numbers(rewrite, main.inputs[2], row, 1);
  if (!given) return std::nullopt;
  if (main.op == "gemm") {
    for (double& x : given->numbers) x *= rewrite.float_attr(main, "beta");
  }
  return given;
}

Result<bool> fold_affine(Rewrite& rewrite, Node& main, Node& last, const PerChannel& s, const PerChannel& t) {
  const int64_t channels = rewrite.type(main.outputs[0]).shape[static_cast<size_t>(channel_axis(rewrite, main))].size;
  const TensorType w = rewrite.type(main.inputs[1]), b{w.dtype, {channels}, nullptr};
  const bool scaled = !s.numbers.empty();
  const ConstantPtr weights = rewrite.graph().value(main.inputs[1]).constant;
  const auto layout = layout_of(main, w);
  if (scaled && (!weights || w.quantized() || !layout || !rewrite.affords(w))) return false;
  const auto bias = bias_numbers(rewrite, main, channels);
  if (!bias || channels == 0 || !rewrite.affords(b)) return false;
  const auto new_bias = [&](size_t c) { return (*bias)[c] * (scaled ? s[c] : 1) + t[c]; };
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    if (!(std::fabs(new_bias(c)) <= largest_of(w.dtype))) return false;
  }
  const std::string base = rewrite.graph().value(last.outputs[0]).name;
  ValueId w_id = main.inputs[1];
  if (scaled) {
    PINNACE_ASSIGN(w_id, visit(w.dtype, [&](auto zero) -> Result<ValueId> {
                     using T = decltype(zero);
                     const std::span from(reinterpret_cast<const T*>(weights->data()),
                                          static_cast<size_t>(w.elements()));
                     if (!scales<T>(from, *layout, s, static_cast<size_t>(channels), w.dtype)) return kNoValue;
                     return rewrite.add_constant(base + ".weight", w.dtype, w.shape, [&](size_t i) {
                       const auto channel = static_cast<size_t>(layout->channel(static_cast<int64_t>(i)));
                       return static_cast<double>(widen(from[i])) * s[channel];
                     });
                   }));
    if (w_id == kNoValue) return false;
  }
  PINNACE_ASSIGN(const ValueId bias_id, rewrite.add_constant(base + ".bias", w.dtype, b.shape, new_bias));
  auto attrs = main.attrs;
  rewrite.replace(last, main.op, {main.inputs[0], w_id, bias_id}, std::move(attrs), main.source);
  last.remove_attr("beta");
  rewrite.remove(main);
  return true;
}

}  // namespace pinnace
