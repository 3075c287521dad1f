// Splitting, equalising, inserting.
#include "quantize/rewrite_graph.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "ops/activation.h"
#include "ops/unary.h"
#include "passes/channels.h"
#include "passes/rewrite.h"
#include "quantize/sites.h"

namespace pinnace {
namespace {

/// The factor by which a channel's weights change at most, in all rounds together.
constexpr double kMostScale = 1e4;
constexpr int kRounds = 20;

/// Weights of a product while channels are evened out.
struct Weights {
  Node* node = nullptr;
  WeightedProduct product;
  std::vector<double> w, bias;  ///< bias: none where it is left out
  bool changed = false;
  /// Per output channel: what it was divided by so far, and the least that it may be. Of a channel with next to no
  /// weights the bias is all there is. It must not grow beyond what other channels reach: one scale has to hold all
  /// channels of the result.
  std::vector<double> divided_by, least;
  std::vector<double> largest(const std::vector<int32_t>& channel_of, int64_t channels) const {
    std::vector<double> most(static_cast<size_t>(channels));
    for (size_t i = 0; i < w.size(); ++i) {
      double& m = most[static_cast<size_t>(channel_of[i])];
      m = std::max(m, std::fabs(w[i]));
    }
    return most;
  }
};

std::optional<Weights> weights_of(const Rewrite& rewrite, Node& node) {
  auto product = weighted_product(rewrite.graph(), node);
  if (!product || product->axis < 0) return std::nullopt;
  if (node.op == "gemm" && (rewrite.float_attr(node, "alpha") != 1 || rewrite.float_attr(node, "beta") != 1)) {
    return std::nullopt;
  }
  Weights found{.node = &node, .product = std::move(*product), .w = *rewrite.numbers(node.inputs[1])};
  if (node.inputs.size() > 2 && node.inputs[2] != kNoValue) {
    const auto bias = bias_numbers(rewrite, node, found.product.outputs);
    if (!bias) return std::nullopt;
    for (int64_t c = 0; c < found.product.outputs; ++c) found.bias.push_back((*bias)[static_cast<size_t>(c)]);
  }
  found.divided_by.assign(static_cast<size_t>(found.product.outputs), 1.0);
  found.least.assign(static_cast<size_t>(found.product.outputs), 1 / kMostScale);
  if (found.bias.empty()) return found;
  // Three standard deviations of a channel where the operands have one of 1, and its bias.
  std::vector<double> squares(found.bias.size(), 0.0);
  for (size_t i = 0; i < found.w.size(); ++i) {
    squares[static_cast<size_t>(found.product.output_of[i])] += found.w[i] * found.w[i];
  }
  double reach = 0;
  for (size_t c = 0; c < squares.size(); ++c) {
    reach = std::max(reach, std::fabs(found.bias[c]) + 3 * std::sqrt(squares[c]));
  }
  for (size_t c = 0; reach > 0 && c < found.bias.size(); ++c) {
    found.least[c] = std::max(found.least[c], std::fabs(found.bias[c]) / reach);
  }
  return found;
}

/// New constants in place of the weights and the bias.
Status write_back(Rewrite& rewrite, const Weights& weights) {
  const Value& w = rewrite.graph().value(weights.node->inputs[1]);
  std::vector<ValueId> inputs = weights.node->inputs;
  PINNACE_ASSIGN(inputs[1], rewrite.add_constant(str_cat(w.name, ".equalized"), DType::kF32, w.type.shape, weights.w));
  if (!weights.bias.empty()) {
    const std::string name = str_cat(rewrite.graph().value(inputs[2]).name, ".equalized");
    PINNACE_ASSIGN(inputs[2], rewrite.add_constant(name, DType::kF32, {weights.product.outputs}, weights.bias));
  }
  rewrite.set_inputs(*weights.node, std::move(inputs));
  return {};
}

/// The value between passes on positive factors: nothing but a relu follows the sums.
bool is_homogeneous(const Node& node) {
  const std::string_view activation = string_or(node, "activation", "");
  return activation.empty() || activation == "relu";
}

/// One step of a pair: factors s with which the second's input channels are multiplied, and the first's outputs
/// divided, so that both have their channel's largest weight at the geometric mean. The largest |log s|.
double even_out(Weights& first, Weights& second) {
  const auto a = first.largest(first.product.output_of, first.product.outputs);
  const auto b = second.largest(second.product.input_of, second.product.inputs);
  double moved = 0;
  std::vector<double> s(a.size(), 1.0);
  for (size_t c = 0; c < s.size(); ++c) {
    const double before = first.divided_by[c];
    if (a[c] > 0 && b[c] > 0) s[c] = std::clamp(std::sqrt(a[c] / b[c]), first.least[c] / before, kMostScale / before);
    first.divided_by[c] = before * s[c];
    moved = std::max(moved, std::fabs(std::log(s[c])));
  }
  for (size_t i = 0; i < first.w.size(); ++i) first.w[i] /= s[static_cast<size_t>(first.product.output_of[i])];
  for (size_t c = 0; c < first.bias.size(); ++c) first.bias[c] /= s[c];
  for (size_t i = 0; i < second.w.size(); ++i) second.w[i] *= s[static_cast<size_t>(second.product.input_of[i])];
  first.changed = second.changed = true;
  return moved;
}

}  // namespace

Status split_activations(Graph& graph, const OpTable& ops, bool clamps) {
  const PassContext context{ops, {}};
  Rewrite rewrite(graph, context);
  for (size_t k = 0; k < graph.nodes.size(); ++k) {
    Node& node = *graph.nodes[k];
    const std::string name(string_or(node, "activation", ""));
    const auto kind = activation_from_name(name);
    if (name.empty() || !kind || (Unary{*kind}.is_clamp() && !clamps)) continue;
    const ValueId result = node.outputs[0];
    if (!is_float_type(graph.value(result).type.dtype)) continue;
    const ValueId sums = graph.add_value(str_cat(graph.value(result).name, ".sums"), graph.value(result).type);
    const bool tanh_form = *kind == UnaryKind::kGeluTanh;
    Node* function =
        graph.insert_node(k + 1, tanh_form ? "gelu" : name, 1, str_cat(node.name, ".", name), {sums}, {result});
    function->source = node.source;
    if (tanh_form) function->set_attr("approximate", std::string("tanh"));
    if (const Attr* params = node.attr("activation_params")) {
      const auto& numbers = std::get<std::vector<double>>(*params);
      const auto names = unary_parameters(*kind);
      for (size_t i = 0; i < std::min(numbers.size(), names.size()); ++i) {
        if (*kind != UnaryKind::kClip) {
          function->set_attr(names[i].name, numbers[i]);
          continue;
        }
        const auto bound = static_cast<float>(numbers[i]);  // which clip has as operands
        PINNACE_ASSIGN(const ValueId id, graph.add_constant_of<float>(str_cat(function->name, ".", names[i].name),
                                                                      DType::kF32, {}, std::span(&bound, 1)));
        function->inputs.push_back(id);
      }
    }
    node.outputs[0] = sums;
    node.remove_attr("activation");
    node.remove_attr("activation_params");
  }
  return verify(graph);
}

Status equalize_channels(Graph& graph, const OpTable& ops) {
  const PassContext context{ops, {}};
  Rewrite rewrite(graph, context);
  std::vector<Weights> all;
  std::unordered_map<const Node*, size_t> place;
  for (Node* node : rewrite.nodes()) {
    if (auto found = weights_of(rewrite, *node)) {
      place[node] = all.size();
      all.push_back(std::move(*found));
    }
  }
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < all.size(); ++i) {
    Node* before = rewrite.producer(all[i].node->inputs[0]);
    if (before && before->op == "relu" && rewrite.inner(before->outputs[0]))
      before = rewrite.producer(before->inputs[0]);
    const auto at = place.find(before);
    if (at == place.end() || !is_homogeneous(*before) || !rewrite.inner(before->outputs[0])) continue;
    const WeightedProduct &first = all[at->second].product, &second = all[i].product;
    if (first.output_axis == second.input_axis && first.outputs == second.inputs) pairs.emplace_back(at->second, i);
  }
  for (int round = 0; round < kRounds; ++round) {
    double moved = 0;
    for (const auto& [a, b] : pairs) moved = std::max(moved, even_out(all[a], all[b]));
    if (moved < 1e-4) break;
  }
  for (const Weights& weights : all) {
    if (weights.changed) PINNACE_TRY(write_back(rewrite, weights));
  }
  return verify(graph);
}

namespace {

/// Inserts what one QuantizeChoices says.
class Insertion {
 public:
  Insertion(Graph& graph, const PassContext& context, const QuantizeChoices& choices)
      : graph_(graph), choices_(choices), rewrite_(graph, context) {}

  Status run() {
    PINNACE_TRY(find());
    // Weights first: they need the scale of what enters, under its own name.
    for (Node* node : chosen_) PINNACE_TRY(round_weights(*node));
    for (const ValueId id : order_) PINNACE_TRY(round(id));
    rewrite_.finish();
    return verify(graph_);
  }

 private:
  struct Place {
    const ByteScale* scale = nullptr;
    bool made = false;  ///< by a chosen node
  };

  Status find() {
    std::unordered_map<std::string_view, Node*> nodes;
    for (Node* node : rewrite_.nodes()) nodes.emplace(node->name, node);
    std::unordered_map<std::string_view, ValueId> values;
    for (size_t i = 0; i < graph_.values.size(); ++i) values.emplace(graph_.values[i].name, static_cast<ValueId>(i));
    for (const ByteScale& scale : choices_.values) {
      const auto at = values.find(scale.value);
      if (at == values.end()) return invalid("there is no value '", scale.value, "' to quantise");
      const TensorType& type = graph_.value(at->second).type;
      if (type.dtype != DType::kF32 || type.quantized() || graph_.value(at->second).constant) {
        return invalid("value '", scale.value, "' is ", to_string(type, graph_.symbols),
                       graph_.value(at->second).constant ? ", a constant" : "", ", only float32 values are quantised");
      }
      if (!(scale.scale > 0) || !std::isfinite(scale.scale) || scale.zero_point < 0 || scale.zero_point > 255) {
        return invalid("value '", scale.value, "': scale ", scale.scale, " and zero point ", scale.zero_point,
                       " must be a positive number and an integer from 0 to 255");
      }
      places_[at->second].scale = &scale;
    }
    for (const auto& [name, means] : choices_.means) means_.emplace(name, &means);
    for (const std::string& name : choices_.nodes) {
      const auto at = nodes.find(name);
      if (at == nodes.end()) return invalid("there is no node '", name, "' to quantise");
      if (at->second->outputs.size() != 1)
        return invalid("node '", name, "' has ", at->second->outputs.size(), " outputs");
      if (!is_chosen_.insert(at->second).second) continue;
      chosen_.push_back(at->second);
    }
    for (Node* node : chosen_) {
      for (size_t i = 0; i < node->inputs.size(); ++i) PINNACE_TRY(need(*node, node->inputs[i], i));
      PINNACE_TRY(need(*node, node->outputs[0], 0));  // a result is rounded as a first operand is
      places_[node->outputs[0]].made = true;
    }
    return {};
  }

  /// Notes that the node has to have the value rounded.
  Status need(const Node& node, ValueId id, size_t input) {
    if (id == kNoValue || graph_.value(id).constant || !is_float_type(graph_.value(id).type.dtype)) return {};
    if (!reads_rounded(rewrite_.op(node), input)) return {};
    const auto at = places_.find(id);
    if (at == places_.end() || !at->second.scale) {
      return invalid("node '", node.name, "' is to be quantised, its value '", graph_.value(id).name, "' has no scale");
    }
    if (seen_.insert(id).second) order_.push_back(id);
    return {};
  }

  Result<ValueId> number(const std::string& name, float scale) {
    return graph_.add_constant_of<float>(name, DType::kF32, {}, std::span(&scale, 1));
  }

  /// Constants that the node reads become integers and a dequantize_linear.
  Status round_weights(Node& node) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (id == kNoValue || !graph_.value(id).constant || graph_.value(id).type.dtype != DType::kF32) continue;
      if (!reads_rounded(rewrite_.op(node), i)) continue;
      const auto product = i == 1 ? weighted_product(graph_, node) : std::nullopt;
      PINNACE_TRY(product ? round_product(node, *product) : round_operand(node, i));
    }
    return {};
  }

  /// A constant operand of an elementwise operator: one scale.
  Status round_operand(Node& node, size_t input) {
    const auto numbers = rewrite_.numbers(node.inputs[input]);
    if (!numbers) return {};
    double most = 0;
    for (const double x : *numbers) most = std::max(most, std::fabs(x));
    const auto scale = static_cast<float>(std::max(most / 127, 0x1p-126));
    return store(node, input, *numbers, {most > 0 ? scale : 1.0f}, {}, -1);
  }

  Status round_product(Node& node, const WeightedProduct& product) {
    const std::vector<double> w = *rewrite_.numbers(node.inputs[1]);
    const auto channels = static_cast<size_t>(product.outputs);
    const bool by_channel = choices_.per_channel && product.axis >= 0;
    std::vector<double> most(channels, 0.0);
    for (size_t i = 0; i < w.size(); ++i) {
      if (!std::isfinite(w[i])) {
        return invalid("node '", node.name, "': weight ", i, " of '", graph_.value(node.inputs[1]).name, "' is ", w[i]);
      }
      double& m = most[static_cast<size_t>(product.output_of[i])];
      m = std::max(m, std::fabs(w[i]));
    }
    std::vector<double> bias(channels, 0.0);
    const bool has_bias = node.inputs.size() > 2 && node.inputs[2] != kNoValue;
    const auto given = has_bias ? bias_numbers(rewrite_, node, product.outputs) : std::nullopt;
    for (size_t c = 0; given && c < channels; ++c) bias[c] = (*given)[c];
    // A bias is an int32 at the scale of the sums: channels of next to no weights get a scale at which theirs fits.
    const double x_scale = static_cast<double>(places_[node.inputs[0]].scale->scale);
    for (size_t c = 0; c < channels; ++c) most[c] = std::max(most[c], 127 * std::fabs(bias[c]) / (x_scale * 0x1p30));
    if (!by_channel) most = {*std::max_element(most.begin(), most.end())};
    std::vector<float> scales;
    for (const double m : most) scales.push_back(m > 0 ? static_cast<float>(std::max(m / 127, 0x1p-126)) : 1.0f);
    std::vector<int32_t> scale_of;
    if (by_channel) scale_of = product.output_of;
    const auto means = means_.find(graph_.value(node.inputs[0]).name);
    const bool corrected = means != means_.end() && (given || !has_bias);
    if (corrected) PINNACE_TRY(correct(node, product, w, scales, scale_of, *means->second, bias));
    if (given || corrected) PINNACE_TRY(store_bias(node, bias, scales, x_scale));
    return store(node, 1, w, scales, scale_of, by_channel ? product.axis : -1);
  }

  static double rounded(double x, float scale) {
    return std::clamp(std::nearbyint(x / static_cast<double>(scale)), -127.0, 127.0);
  }

  /// What rounding of weights adds to the sums at the mean of what enters is taken off the bias.
  Status correct(Node& node, const WeightedProduct& product, const std::vector<double>& w,
                 const std::vector<float>& scales, const std::vector<int32_t>& scale_of,
                 const std::vector<double>& means, std::vector<double>& bias) {
    if (static_cast<int64_t>(means.size()) != product.inputs) {
      return invalid("node '", node.name, "': value '", graph_.value(node.inputs[0]).name, "' has ", means.size(),
                     " means, its weights take ", product.inputs, " channels");
    }
    for (size_t i = 0; i < w.size(); ++i) {
      const float scale = scales[scale_of.empty() ? 0 : static_cast<size_t>(scale_of[i])];
      const double error = rounded(w[i], scale) * static_cast<double>(scale) - w[i];
      bias[static_cast<size_t>(product.output_of[i])] -= error * means[static_cast<size_t>(product.input_of[i])];
    }
    return {};
  }

  /// The bias as int32 at the scale of the sums, and a dequantize_linear: so it is rounded between floats as well.
  Status store_bias(Node& node, const std::vector<double>& bias, const std::vector<float>& scales, double x_scale) {
    std::vector<int32_t> integers(bias.size());
    std::vector<float> steps(bias.size());
    for (size_t c = 0; c < bias.size(); ++c) {
      const double step = x_scale * static_cast<double>(scales[scales.size() > 1 ? c : 0]);
      steps[c] = static_cast<float>(std::max(step, 0x1p-126));
      integers[c] = static_cast<int32_t>(std::clamp(std::nearbyint(bias[c] / step), -0x1p31 + 1, 0x1p31 - 1));
    }
    const std::string name = str_cat(graph_.value(node.outputs[0]).name, ".bias");
    const Shape shape = {static_cast<int64_t>(bias.size())};
    PINNACE_ASSIGN(const ValueId q,
                   graph_.add_constant_of<int32_t>(str_cat(name, ".int32"), DType::kI32, shape, integers));
    PINNACE_ASSIGN(const ValueId s, graph_.add_constant_of<float>(str_cat(name, ".scale"), DType::kF32, shape, steps));
    std::vector<ValueId> inputs = node.inputs;
    inputs.resize(3, kNoValue);
    const TensorType type{DType::kF32, shape, nullptr};
    inputs[2] = rewrite_.insert_before(node, "dequantize_linear", {q, s}, {{"axis", int64_t{0}}}, type, name);
    rewrite_.set_inputs(node, std::move(inputs));
    return {};
  }

  Status store(Node& node, size_t input, const std::vector<double>& numbers, const std::vector<float>& scales,
               const std::vector<int32_t>& scale_of, int axis) {
    const ValueId from = node.inputs[input];
    const std::string name = graph_.value(from).name;
    const Shape shape = graph_.value(from).type.shape;
    std::vector<int8_t> integers(numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) {
      const float scale = scales[scale_of.empty() ? 0 : static_cast<size_t>(scale_of[i])];
      integers[i] = static_cast<int8_t>(rounded(numbers[i], scale));
    }
    const Shape along = axis < 0 ? Shape{} : Shape{static_cast<int64_t>(scales.size())};
    PINNACE_ASSIGN(const ValueId q,
                   graph_.add_constant_of<int8_t>(str_cat(name, ".int8"), DType::kI8, shape, integers));
    PINNACE_ASSIGN(const ValueId s, graph_.add_constant_of<float>(str_cat(name, ".scale"), DType::kF32, along, scales));
    decltype(Node::attrs) attrs;
    if (axis >= 0) attrs.emplace_back("axis", int64_t{axis});
    const TensorType type{DType::kF32, shape, nullptr};
    std::vector<ValueId> inputs = node.inputs;
    inputs[input] = rewrite_.insert_before(node, "dequantize_linear", {q, s}, std::move(attrs), type,
                                           str_cat(name, ".dequantized"));
    rewrite_.set_inputs(node, std::move(inputs));
    return {};
  }

  /// quantize_linear and dequantize_linear behind the value.
  Status round(ValueId id) {
    const Place& place = places_[id];
    Node* maker = rewrite_.producer(id);
    const std::vector<Node*> readers = rewrite_.readers(id);
    std::unordered_set<const Node*> seen;
    size_t at = 0;  // before the first node that reads it
    while (at < graph_.nodes.size() &&
           std::find(readers.begin(), readers.end(), graph_.nodes[at].get()) == readers.end()) {
      ++at;
    }
    const std::string name = graph_.value(id).name;
    const TensorType type = graph_.value(id).type;
    PINNACE_ASSIGN(const ValueId scale, number(str_cat(name, ".scale"), place.scale->scale));
    const auto zero = static_cast<uint8_t>(place.scale->zero_point);
    PINNACE_ASSIGN(const ValueId zero_point,
                   graph_.add_constant_of<uint8_t>(str_cat(name, ".zero_point"), DType::kU8, {}, std::span(&zero, 1)));
    const ValueId q = graph_.add_value(str_cat(name, ".uint8"), {DType::kU8, type.shape, nullptr});
    const ValueId d = graph_.add_value(str_cat(name, maker ? ".exact" : ".rounded"), type);
    if (maker) std::swap(graph_.value(id).name, graph_.value(d).name);  // others know the rounded one under the name
    Node* quantize =
        graph_.insert_node(at, "quantize_linear", 1, str_cat(name, ".quantize"), {id, scale, zero_point}, {q});
    Node* back =
        graph_.insert_node(at + 1, "dequantize_linear", 1, str_cat(name, ".dequantize"), {q, scale, zero_point}, {d});
    if (maker) quantize->source = back->source = maker->source;
    for (Node* reader : readers) {
      if ((place.made || is_chosen_.contains(reader)) && seen.insert(reader).second) {
        std::replace(reader->inputs.begin(), reader->inputs.end(), id, d);
      }
    }
    if (!place.made) return {};
    std::replace(graph_.outputs.begin(), graph_.outputs.end(), id, d);
    for (State& state : graph_.states) {
      if (state.output == id) state.output = d;
    }
    return {};
  }

  Graph& graph_;
  const QuantizeChoices& choices_;
  Rewrite rewrite_;
  std::unordered_map<ValueId, Place> places_;
  std::unordered_map<std::string_view, const std::vector<double>*> means_;
  std::vector<Node*> chosen_;
  std::unordered_set<const Node*> is_chosen_;
  std::vector<ValueId> order_;  ///< values to round
  std::unordered_set<ValueId> seen_;
};

}  // namespace

Status insert_quantization(Graph& graph, const OpTable& ops, const QuantizeChoices& choices) {
  const PassContext context{ops, {}};
  return Insertion(graph, context, choices).run();
}

Status cut_graph(Graph& graph, std::span<const std::string> values) {
  std::unordered_map<std::string, ValueId> made;
  for (const auto& node : graph.nodes) {
    for (const ValueId id : node->outputs) made.emplace(graph.value(id).name, id);
  }
  for (const std::string& name : values) {
    const auto at = made.find(name);
    if (at == made.end()) return invalid("there is no value '", name, "' that a node makes and that was not cut yet");
    const ValueId id = at->second, given = graph.add_value(str_cat(name, ".given"), graph.value(id).type);
    graph.replace_uses(id, given);
    std::swap(graph.value(id).name, graph.value(given).name);
    graph.inputs.push_back(given);
    std::string output = str_cat(name, ".made");
    while (std::ranges::count(graph.output_names, output) > 0) output += "_";
    graph.add_output(std::move(output), id);
    made.erase(at);
  }
  return verify(graph);
}

}  // namespace pinnace
