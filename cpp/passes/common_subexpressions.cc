// common_subexpressions: of nodes with the same operator, attributes, inputs and output types only the first stays.
// Constants of at most 4096 bytes with the same type and bytes count as the same input. No arithmetic changes: numbers
// in attributes are compared by their bits. Conditions: a built-in operator without bodies; no result of the node that
// goes leaves the graph. Nodes are found by all that makes them the same, written in one row of bytes: time and memory
// grow with the graph, however alike its nodes are.
#include <algorithm>
#include <unordered_map>

#include "passes/rewrite.h"

namespace pinnace {
namespace {

constexpr size_t kConstantBytes = 4096;

/// Appends what has a size of its own, so that two keys are equal only if their parts are.
class Key {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  void add(T number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void add(std::string_view text) {
    add(text.size());
    bytes_.append(text);
  }
  template <class T>
  void add(const std::vector<T>& list) {
    add(list.size());
    for (const T& each : list) add(each);
  }
  void add(const std::string& text) { add(std::string_view(text)); }
  void add(const Dim& d) { add(d.size), add(int64_t{d.symbol}), add(d.max); }
  void add(const Quantization& q) { add(q.scales), add(q.zero_points), add(q.axis), add(q.block); }
  template <class T>
  bool add_if(const Attr& attr) {
    const T* value = std::get_if<T>(&attr);
    if (value) add(*value);
    return value;
  }
  void add(const Attr& attr) {
    add(attr.index());
    add_if<int64_t>(attr) || add_if<double>(attr) || add_if<std::string>(attr) || add_if<std::vector<int64_t>>(attr) ||
        add_if<std::vector<double>>(attr) || add_if<std::vector<std::string>>(attr);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Finds the first of equal nodes, while it goes through them in order.
class Merge {
 public:
  Merge(Graph& graph, const PassContext& context) : graph_(graph), context_(context), rewrite_(graph, context) {
    stands_for_.resize(graph.values.size());
    for (size_t i = 0; i < stands_for_.size(); ++i) stands_for_[i] = static_cast<ValueId>(i);
  }

  /// Inputs that a node before it makes as well are read from there. True if the node itself goes.
  bool visit(Node& node) {
    for (ValueId& id : node.inputs) {
      if (id != kNoValue) id = stands_for_[static_cast<size_t>(id)];
    }
    const OpDef* op = context_.ops.find(node.op);
    const auto body = [](const auto& attr) { return std::holds_alternative<GraphPtr>(attr.second); };
    if (!op || op->context || std::any_of(node.attrs.begin(), node.attrs.end(), body)) return false;
    const auto [first, fresh] = nodes_.emplace(key_of(node), &node);
    if (fresh) return false;
    const auto leaves = [&](ValueId id) { return rewrite_.leaves(id); };
    if (std::any_of(node.outputs.begin(), node.outputs.end(), leaves)) return false;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      stands_for_[static_cast<size_t>(node.outputs[i])] = first->second->outputs[i];
    }
    return true;
  }

 private:
  std::string key_of(const Node& node) {
    Key key;
    key.add(node.op);
    key.add(node.version);
    key.add(node.inputs.size());
    for (ValueId id : node.inputs) key.add(representative(id));
    key.add(node.attrs.size());
    for (const auto& [name, value] : node.attrs) {
      key.add(name);
      key.add(value);
    }
    key.add(node.outputs.size());
    for (ValueId id : node.outputs) add_type(key, rewrite_.type(id));
    return key.take();
  }

  /// Parameters of quantised types are shared by many values: they are read once and then go by number.
  void add_type(Key& key, const TensorType& type) {
    key.add(static_cast<int>(type.dtype));
    key.add(type.shape);
    if (!type.quantized()) return key.add(size_t{0});
    const auto [known, fresh] = quantization_.emplace(type.quantization.get(), 0);
    if (fresh) {
      Key parameters;
      parameters.add(*type.quantization);
      known->second = quantizations_.emplace(parameters.take(), quantizations_.size() + 1).first->second;
    }
    key.add(known->second);
  }

  /// The first constant with the same type and bytes; others are themselves.
  ValueId representative(ValueId id) {
    if (id == kNoValue) return id;
    const Value& v = graph_.value(id);
    if (!v.constant || v.constant->bytes() > kConstantBytes) return id;
    const auto [known, fresh] = constant_.emplace(id, id);
    if (fresh) {
      Key key;
      add_type(key, v.type);
      key.add(std::string_view(reinterpret_cast<const char*>(v.constant->data()), v.constant->bytes()));
      known->second = constants_.emplace(key.take(), id).first->second;
    }
    return known->second;
  }

  Graph& graph_;
  const PassContext& context_;
  const Rewrite rewrite_;
  std::vector<ValueId> stands_for_;
  std::unordered_map<std::string, Node*> nodes_;
  std::unordered_map<std::string, ValueId> constants_;
  std::unordered_map<ValueId, ValueId> constant_;
  std::unordered_map<std::string, size_t> quantizations_;
  std::unordered_map<const Quantization*, size_t> quantization_;
};

Result<int> run(Graph& graph, const PassContext& context) {
  Merge merge(graph, context);
  std::vector<bool> dead;
  for (const auto& node : graph.nodes) dead.push_back(merge.visit(*node));
  const auto changes = static_cast<int>(std::count(dead.begin(), dead.end(), true));
  if (changes) graph.erase_nodes(dead);
  return changes;
}

}  // namespace

extern const PassDef common_subexpressions_pass;
const PassDef common_subexpressions_pass{"common_subexpressions", "computes what is computed twice only once", 0, run};

}  // namespace pinnace
