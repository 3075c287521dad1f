// Sites are found by trying: all candidates are quantised with ranges that mean nothing, fold_quantization runs, and
// what it made integers of can be quantised. So no rule of an operator stands here a second time.
#include "quantize/sites.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "convert/picture_nodes.h"
#include "passes/pass.h"
#include "passes/rewrite.h"
#include "quantize/rewrite_graph.h"

namespace pinnace {

extern const PassDef fold_quantization_pass;

namespace {

bool plain_float(const TensorType& type) {
  return type.dtype == DType::kF32 && !type.quantized();
}

/// Whether the operator has an integer form that is used.
bool has_form(const OpDef* op) {
  return op && op->has(Trait::kFoldsQuantization) && op->name != "softmax";
}

/// The values that have to be quantised for the node; nothing where it is no candidate.
std::optional<std::vector<ValueId>> operands(const Graph& graph, const Node& node, const OpTable& ops) {
  const OpDef* op = ops.find(node.op);
  if (!has_form(op) || node.outputs.size() != 1) return std::nullopt;
  if (node.source.module == kPreprocessingModule) return std::nullopt;  // makes bytes, of weights finer than a byte's
  if (!plain_float(graph.value(node.outputs[0]).type)) return std::nullopt;
  std::vector<ValueId> read;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    if (id == kNoValue || !reads_rounded(*op, i) || !is_float_type(graph.value(id).type.dtype)) continue;
    if (!plain_float(graph.value(id).type)) return std::nullopt;
    if (!graph.value(id).constant) read.push_back(id);
  }
  if (read.empty()) return std::nullopt;
  return read;
}

class Groups {
 public:
  explicit Groups(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  int of(int i) {
    while (parent_[static_cast<size_t>(i)] != i) i = parent_[static_cast<size_t>(i)];
    return i;
  }
  /// The smaller of the two stays the root.
  void join(int a, int b) {
    a = of(a), b = of(b);
    parent_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }

 private:
  std::vector<int> parent_;
};

/// Whether the operator's result has the range of its operands: it gives elements on, or means of them, which devices
/// compute without another scale.
bool keeps_range(const OpDef& op) {
  return op.has(Trait::kMoves | Trait::kReshapes) || op.name == "concat" || op.name.ends_with("_pool");
}

}  // namespace

bool reads_rounded(const OpDef& op, size_t input) {
  if (input > 0 && (op.name == "clip" || op.name == "resize")) return false;
  return input != 2 || !op.has(Trait::kProduct);
}

std::optional<WeightedProduct> weighted_product(const Graph& graph, const Node& node) {
  if (node.inputs.size() < 2 || node.inputs[1] == kNoValue || node.outputs.size() != 1) return std::nullopt;
  const Value& w = graph.value(node.inputs[1]);
  const int rank = w.type.rank();
  if (!w.constant || !plain_float(w.type) || rank < 2 || w.type.elements() <= 0) return std::nullopt;
  const int64_t first = w.type.shape[0].size, second = w.type.shape[1].size, all = w.type.elements();
  const int64_t inner = all / first / second, group = int_or(node, "group", 1);
  WeightedProduct found;
  const bool conv = node.op == "conv", transposed = node.op == "conv_transpose";
  const bool turned = node.op == "gemm" && int_or(node, "trans_b", 0) != 0;
  if (conv) {
    found = {.outputs = first, .inputs = second * group, .axis = 0};
  } else if (transposed) {
    found = {.outputs = second * group, .inputs = first, .axis = group == 1 ? 1 : -1};
  } else if ((node.op == "gemm" && !int_or(node, "trans_a", 0)) || (node.op == "mat_mul" && rank == 2)) {
    found = {.outputs = turned ? first : second, .inputs = turned ? second : first, .axis = turned ? 0 : 1};
  } else {
    return std::nullopt;
  }
  const bool planes = conv || transposed;  // channels before the places of an image, else behind all
  found.output_axis = planes ? 1 : graph.value(node.outputs[0]).type.rank() - 1;
  found.input_axis = planes ? 1 : graph.value(node.inputs[0]).type.rank() - 1;
  if (group <= 0 || found.outputs % group || found.inputs % group) return std::nullopt;
  found.output_of.resize(static_cast<size_t>(all));
  found.input_of.resize(static_cast<size_t>(all));
  for (int64_t i = 0; i < all; ++i) {
    const int64_t a = i / inner / second, b = i / inner % second;
    int64_t out = turned ? a : b, in = turned ? b : a;
    if (conv) out = a, in = a / (first / group) * second + b;
    if (transposed) out = a / (first / group) * second + b, in = a;
    found.output_of[static_cast<size_t>(i)] = static_cast<int32_t>(out);
    found.input_of[static_cast<size_t>(i)] = static_cast<int32_t>(in);
  }
  return found;
}

Result<QuantizationSites> find_sites(const Graph& graph, const OpTable& ops) {
  // All candidates, with a range that fits any operator.
  QuantizeChoices trial;
  std::unordered_set<ValueId> values;
  for (const auto& node : graph.nodes) {
    const auto read = operands(graph, *node, ops);
    if (!read) continue;
    trial.nodes.push_back(node->name);
    values.insert(read->begin(), read->end());
    values.insert(node->outputs[0]);
  }
  for (const ValueId id : values) trial.values.push_back({graph.value(id).name, 1.0f / 128, 128});
  Graph tried = graph.clone();
  PINNACE_TRY(insert_quantization(tried, ops, trial));
  const PassContext context{ops, {}};
  for (int round = 0; round < 4; ++round) {  // what carries a reshape along may fold first without it
    PINNACE_ASSIGN(const int changes, fold_quantization_pass.run(tried, context));
    if (changes == 0) break;
  }
  std::unordered_set<std::string_view> folded;
  for (const auto& node : tried.nodes) {
    if (!node->outputs.empty() && tried.value(node->outputs[0]).type.quantized()) folded.insert(node->name);
  }

  QuantizationSites sites;
  std::unordered_map<ValueId, int> place;
  std::unordered_set<ValueId> made;  // by nodes that were taken
  const auto place_of = [&](ValueId id) {
    const auto [at, is_new] = place.emplace(id, static_cast<int>(sites.values.size()));
    if (is_new) sites.values.push_back({.name = graph.value(id).name});
    return at->second;
  };
  std::vector<std::pair<int, int>> joined;
  std::unordered_map<ValueId, int> axis_of;
  for (const auto& node : graph.nodes) {
    if (!has_form(ops.find(node->op))) sites.float_only.push_back(node->name);
    const auto read = operands(graph, *node, ops);
    if (!read || !folded.contains(node->name)) continue;
    const auto product = weighted_product(graph, *node);
    const bool weighted = product.has_value();
    const auto is_made = [&](ValueId id) { return made.contains(id); };
    if (!weighted && !std::all_of(read->begin(), read->end(), is_made)) continue;
    made.insert(node->outputs[0]);
    QuantizationNode row{.name = node->name,
                         .op = node->op,
                         .source = node->source.text(),
                         .module = node->source.module,
                         .output = graph.value(node->outputs[0]).name,
                         .weighted = weighted};
    for (const ValueId id : *read) {
      place_of(id);
      row.inputs.push_back(graph.value(id).name);
    }
    const int result = place_of(node->outputs[0]);
    if (weighted) {
      row.weights = graph.value(node->inputs[1]).type.elements();
      // Axis 0 counts samples. Where products take channels of different axes there is no mean that serves both.
      const int axis = product->input_axis > 0 ? product->input_axis : -1;
      const auto [known, is_first] = axis_of.emplace(node->inputs[0], axis);
      if (!is_first && known->second != axis) known->second = -1;
    }
    if (keeps_range(*ops.find(node->op))) {
      for (const ValueId id : *read) joined.emplace_back(place_of(id), result);
    }
    sites.nodes.push_back(std::move(row));
  }
  for (const auto& [id, axis] : axis_of) sites.values[static_cast<size_t>(place_of(id))].channel_axis = axis;
  Groups groups(sites.values.size());
  for (const auto& [a, b] : joined) groups.join(a, b);
  for (size_t i = 0; i < sites.values.size(); ++i) sites.values[i].group = groups.of(static_cast<int>(i));
  return sites;
}

}  // namespace pinnace
