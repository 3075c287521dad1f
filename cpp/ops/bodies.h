// Nested graphs in shape rules: types of a body's outputs under given inputs, and what several ways to a value have in
// common. A loop infers its body until the carried sizes are stable, an `if` both of its branches, and in nests that
// multiplies: what was found is kept, and how much may be looked for is limited.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ops/type_inference.h"

namespace pinnace {

/// What a node needs to know of one of its bodies.
struct BodyOutputs {
  std::vector<TensorType> types;  ///< in the order of Graph::outputs
  bool first_is_true = false;     ///< output 0 is a bool whose first element is known to be true
};

/// Nodes that are nested in `graph` or `node`, at any depth.
int64_t nested_nodes(const Graph& graph);
int64_t nested_nodes(const Node& node);

/// What one type inference has found of nested graphs, by graph, input types and input contents, and what it may still
/// do. Steps are nodes, their inputs and outputs, sizes of shapes, and each kBytesPerStep bytes that are kept or
/// computed ahead. While it lives, no operator, no edge and no constant of a nested graph may change.
///
/// The type inference of a graph and those of its bodies, which shape rules begin, are on one thread's stack. So a
/// thread has one of these at a time: the latest made that still is. Code that infers another graph makes its own.
class Bodies {
 public:
  /// A graph with so many nested nodes.
  explicit Bodies(int64_t nodes);
  ~Bodies();
  Bodies(const Bodies&) = delete;
  Bodies& operator=(const Bodies&) = delete;
  /// This thread's, or null outside of type inference.
  static Bodies* current();

  /// kUnsupported if there are no more steps.
  Status charge(int64_t steps);
  /// What was found for `key`, or null.
  const Result<BodyOutputs>* find(const std::string& key) const;
  void keep(std::string key, const Result<BodyOutputs>& found);

  static constexpr int64_t kBytesPerStep = 64;

 private:
  /// About 0.1 s. Without nests in which sizes change at every level, a body takes less than ten steps a node.
  static constexpr int64_t kSteps = 1 << 17, kStepsPerNode = 128;

  int64_t nodes_, limit_, steps_ = 0;
  Bodies* before_;  ///< the thread's until this one goes
  std::unordered_map<std::string, Result<BodyOutputs>> found_;
};

/// Infers `body` with these types in place of its declared ones; data[i], if not null, are the contents of input i.
/// `what` names it in errors: "then_branch". The number and element types of inputs must be the body's.
Result<BodyOutputs> infer_body(const NodeView& node, std::string_view what, const Graph& body,
                               std::span<const TensorType> inputs, std::span<const void* const> data);

/// The same with the body's declared types.
Result<BodyOutputs> infer_body(const NodeView& node, std::string_view what, const Graph& body);

/// infer_types() of a nested graph as part of the type inference around it, to whose steps it counts.
Result<TypeInference> infer_nested(const Graph& body, std::span<const TensorType> input_types,
                                   std::span<const ConstantPtr> input_data, const OpTable& ops, Bodies& bodies);

/// As infer_types(), infer_into() and update_types(), for graphs of which nobody knows whether they run, as bodies,
/// which are always inferred so: where reference code refuses the contents that it would compute with, an index out of
/// range, the node is not computed ahead. The error comes when it runs, if it does.
Result<TypeInference> infer_what_may_fail(const Graph& graph, const OpTable& ops);
Status infer_into_what_may_fail(const Graph& graph, const Node& node, TypeInference& state, const OpTable& ops);
Status update_types_of_what_may_fail(Graph& graph, const OpTable& ops);

/// The type of a value that is `a` or `b`: sizes that differ become unknown. kInvalidArgument: element type, rank or
/// quantisation differ; `what` names the value.
Result<TensorType> either_type(const NodeView& node, std::string_view what, const TensorType& a, const TensorType& b);

}  // namespace pinnace
