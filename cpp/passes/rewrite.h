// What passes that replace patterns share: who makes and who reads each value, kept up to date while nodes are
// replaced, removed and inserted; and constants as numbers. A pattern is matched from its last node backwards; that
// node is turned into the fused one, so that its name and its result's name stay what the source model calls them.
#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "ops/unary.h"
#include "passes/pass.h"

namespace pinnace {

class Rewrite {
 public:
  Rewrite(Graph& graph, const PassContext& context);

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  const TensorType& type(ValueId id) const { return graph_.value(id).type; }
  /// The nodes at the start, in order. Those that alive() denies must be skipped.
  const std::vector<Node*>& nodes() const { return nodes_; }
  bool alive(const Node* node) const { return !dead_.contains(node); }

  /// The node that makes `id`, null for inputs, constants, states and kNoValue.
  Node* producer(ValueId id) const;
  /// The same, if it is an application of `op` with one output.
  Node* producer(ValueId id, std::string_view op) const;
  /// How many mentions by nodes.
  size_t reader_count(ValueId id) const { return readers_[static_cast<size_t>(id)].size(); }
  const std::vector<Node*>& readers(ValueId id) const { return readers_[static_cast<size_t>(id)]; }
  /// The value is an output of the graph or of a state, or the user keeps it.
  bool leaves(ValueId id) const { return leaves_[static_cast<size_t>(id)]; }
  /// Exactly one mention, and it leaves nowhere: it may vanish when its reader is fused with its producer.
  bool inner(ValueId id) const { return reader_count(id) == 1 && !leaves(id); }
  /// True if the outputs of `pattern` are read only by nodes of `pattern` and by `last` and leave nowhere: all of them
  /// may vanish when `last` is replaced.
  bool closed(const std::vector<Node*>& pattern, const Node* last) const;

  /// Turns `node` into an application of `op` of version 1; name and outputs stay. Counts as one rewrite.
  void replace(Node& node, std::string_view op, std::vector<ValueId> inputs, decltype(Node::attrs) attrs,
               SourceLocation source);
  void set_inputs(Node& node, std::vector<ValueId> inputs);
  /// Removes a node whose outputs nobody reads any more, or not after this pass.
  void remove(Node& node);
  void remove(const std::vector<Node*>& nodes) {
    for (Node* node : nodes) remove(*node);
  }
  /// Makes the readers of the only output of `node` read `to` and removes the node. Where that output leaves the graph,
  /// the producer of `to` takes its name over; false, and nothing done, where it cannot.
  bool bypass(Node& node, ValueId to);
  /// A new node with one new output of that type, before `node`.
  ValueId insert_before(Node& node, std::string_view op, std::vector<ValueId> inputs, decltype(Node::attrs) attrs,
                        TensorType type, std::string name);
  /// False if a constant of that type would be more than passes may still make (PassContext::constant_budget), or has
  /// no known size. To be asked before add_constant where sizes come from the model.
  bool affords(const TensorType& type) const;
  /// A new constant, charged to the budget; element(i) is converted to the float type `dtype`, or to i32 or i64.
  Result<ValueId> add_constant(std::string name, DType dtype, Shape shape,
                               const std::function<double(size_t)>& element);
  Result<ValueId> add_constant(std::string name, DType dtype, Shape shape, std::span<const double> elements) {
    return add_constant(std::move(name), dtype, std::move(shape), [&](size_t i) { return elements[i]; });
  }

  /// A new constant of those bytes, which others share.
  ValueId add_constant_like(std::string name, TensorType type, ConstantPtr bytes);

  /// Removes the dead nodes and returns the number of rewrites.
  int finish();

  /// A constant's elements as doubles: floats, not quantised, and i32 and i64. Nothing for others.
  std::optional<std::vector<double>> numbers(ValueId id) const;
  /// The only element of a constant (of any rank) as numbers() gives it.
  std::optional<double> scalar(ValueId id) const;
  /// True if scalar(id) is `wanted`, to within the rounding of the constant's element type.
  bool is_scalar(ValueId id, double wanted) const;
  /// An attribute of a built-in operator, or the default that its schema states: 0.2 as float32 is not 0.2.
  double float_attr(const Node& node, std::string_view name) const;

  const OpDef& op(const Node& node) const { return *context_.ops.find(node.op); }
  /// True if the node's operator has one of the traits.
  bool has(const Node& node, Traits any) const { return op(node).has(any); }
  /// The unary function that a node of this graph applies (unary_of), with what constants say.
  std::optional<Unary> unary(const Node& node) const;

 private:
  void redirect(ValueId from, ValueId to);
  void grow();
  void note_read(Node& node);
  void note_merged();
  Graph& graph_;
  const PassContext& context_;
  std::vector<Node*> nodes_, producer_;
  std::vector<Node*> maker_;  ///< per value at the start: its producer, gone or not
  std::vector<std::vector<Node*>> readers_;
  std::vector<bool> leaves_;
  std::unordered_set<const Node*> dead_;
  std::unordered_map<const Node*, std::vector<Node*>> read_;  ///< whose results replaced and removed nodes read
  std::vector<Node*> replaced_;
  int changes_ = 0;
};

/// A product of values and numbers, taken apart: last's result is factor * terms[0] * terms[1] * ...
struct Product {
  double factor = 1;
  std::vector<ValueId> terms;
  std::vector<Node*> nodes;  ///< the mul, div and neg nodes before `last`, all of which may vanish with it
};
/// Follows mul, div by a constant and neg back from `last`, which is one of them, through values that only the product
/// reads and that have the type of the result. Broadcasting happens in terms only. Nothing for other nodes.
std::optional<Product> product_of(const Rewrite& rewrite, Node& last);
/// The same for the node that makes `id`; a value that no product makes is a product of one term.
Product product_of(const Rewrite& rewrite, ValueId id);
/// True if the terms are those two, in either order: `x` itself and what `match` accepts.
template <class F>
bool is_product_with(const Product& product, double factor, F match) {
  if (product.terms.size() != 2 || std::abs(product.factor - factor) > 1e-3 * std::abs(factor)) return false;
  return match(product.terms[0], product.terms[1]) || match(product.terms[1], product.terms[0]);
}

/// Attributes that may be absent, with the operator's default.
int64_t int_or(const Node& node, std::string_view name, int64_t value);
std::string_view string_or(const Node& node, std::string_view name, std::string_view value);
std::span<const int64_t> ints_or_empty(const Node& node, std::string_view name);

/// For commutative nodes: the two inputs in both orders. Stops when f(a, b) says true; false if it never does.
template <class F>
bool either_order(const Node& node, F f) {
  return node.inputs.size() == 2 && (f(node.inputs[0], node.inputs[1]) || f(node.inputs[1], node.inputs[0]));
}

/// Whether the sizes are the same in every run.
inline bool equal_dim(Dim a, Dim b) {
  return a == b && (a.known() || a.symbol >= 0);
}

inline bool is_float_type(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF64;
}

}  // namespace pinnace
