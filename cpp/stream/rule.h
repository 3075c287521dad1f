// What a rule is: how the results of one operator come in pieces where its operands do, and the nodes that compute
// them. rules.inc lists them by operator.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "graph/graph.h"
#include "ops/type_inference.h"
#include "stream/flow.h"

namespace pinnace {

class StreamWriter;

/// What a rule finds for a node.
struct StreamStep {
  /// One for each output; nothing: it does not come in pieces, and must not be read.
  std::vector<std::optional<Flow>> outputs;
  /// Delays of the streamed operands that `write` begins with; null: each as it comes.
  std::optional<int64_t> delay = {};
  /// Which elements of every streamed operand are read for those of the outputs; null: the same.
  std::function<Needed(const Needed&)> reads = nullptr;
  /// The streamed value that `write` reads; kNoValue: the node's own operands.
  ValueId source = kNoValue;
  /// Adds the nodes, and says what computes the outputs; null: a copy of the node.
  std::function<Status(StreamWriter&, const Needed&)> write = nullptr;
};

/// The whole graph, and what is known of its values so far.
class StreamReader {
 public:
  StreamReader(const Graph& whole, const OpTable& ops) : graph(whole), ops_(ops), values(whole.values.size()) {}

  const Graph& graph;

  struct Known {
    std::optional<Flow> flow;
    std::optional<std::vector<Length>> lengths;  ///< of what is computed from sizes along time alone
    bool depends = false;                        ///< on the number of elements, or on elements that come later
  };
  const OpTable& ops() const { return ops_; }
  Known& operator[](ValueId id) { return values[static_cast<size_t>(id)]; }
  const Known& operator[](ValueId id) const { return values[static_cast<size_t>(id)]; }
  const Flow* flow(ValueId id) const { return id != kNoValue && (*this)[id].flow ? &*(*this)[id].flow : nullptr; }
  const Flow* flow(const Node& node, size_t i) const { return i < node.inputs.size() ? flow(node.inputs[i]) : nullptr; }
  const TensorType& type(ValueId id) const { return graph.value(id).type; }
  bool has(const Node& node, size_t i) const { return i < node.inputs.size() && node.inputs[i] != kNoValue; }
  /// Elements of a constant of integers.
  std::optional<std::vector<int64_t>> ints(const Node& node, size_t i) const;
  /// The only element of a constant.
  std::optional<double> number(const Node& node, size_t i) const;
  /// Elements of a constant of integers, or lengths.
  std::optional<std::vector<Length>> lengths(const Node& node, size_t i) const;
  /// Attributes, with the schema's default.
  int64_t attr_int(const Node& node, std::string_view name) const;
  std::string_view attr_string(const Node& node, std::string_view name) const;
  std::vector<int64_t> attr_ints(const Node& node, std::string_view name) const;

  /// Chunks must have sizes by which `down` can be divided.
  void need_multiple(int64_t down) { multiple = std::lcm(multiple, down); }
  int64_t multiple = 1;
  int64_t longest = Symbol::kUnbounded;  ///< elements of the input that the model declares

 private:
  const OpTable& ops_;
  std::vector<Known> values;
};

/// A refusal: rule and value of the NodeProblem.
inline Status cannot_stream(std::string rule, const std::string& value = {}) {
  return Status(Code::kConversion, std::move(rule)).with_rule(value);
}

using StreamRule = Result<StreamStep> (*)(StreamReader& reader, const Node& node);
/// The rule of a node, or null.
StreamRule stream_rule(const StreamReader& reader, const Node& node);

/// Writes the new graph.
class StreamWriter {
 public:
  StreamWriter(const StreamReader& reader, Graph& graph, std::string stream, ValueId input, int axis, int64_t tail)
      : reader(reader),
        graph(graph),
        stream_(std::move(stream)),
        input_(input),
        axis_(axis),
        tail_(tail),
        mapped_(reader.graph.values.size(), kNoValue) {}

  const StreamReader& reader;
  Graph& graph;

  /// A value of the whole graph in the new one.
  ValueId mapped(ValueId id);
  void map(ValueId whole, ValueId id) { mapped_[static_cast<size_t>(whole)] = id; }
  const TensorType& type(ValueId id) const { return graph.value(id).type; }
  int64_t tail() const { return tail_; }

  /// A node with one output.
  ValueId add(std::string_view op, const std::string& name, std::vector<ValueId> inputs, TensorType type,
              decltype(Node::attrs) attrs = {});
  /// A copy of `node` with other inputs, whose outputs the whole's map to.
  Node& copy(const Node& node, std::vector<ValueId> inputs);
  /// The same with the node's own inputs, as they are mapped.
  Node& copy(const Node& node);

  /// A streamed value, with `flow`, after a delay line up to delay `to`.
  Result<ValueId> delayed(ValueId id, const Flow& flow, int64_t to);
  /// `value` where the stream is before v[0], and behind its last element.
  Result<ValueId> masked(ValueId id, const Flow& flow, bool before, bool after, double value);
  /// masked() as far as what is read lies outside v and the stream does not hold `value` there.
  Result<ValueId> padded(ValueId id, const Flow& flow, const Needed& reads, double value);
  /// The last `count` elements before the chunk, and the chunk. What stands for elements before v[0]: `padding`.
  Result<ValueId> with_tail(ValueId id, const Flow& flow, int64_t count, double padding, const std::string& name);
  /// Elements [begin, size + end) along an axis, every step-th; end is at most 0.
  Result<ValueId> cut(ValueId id, int axis, int64_t begin, int64_t end, int64_t step, const std::string& name);
  /// A state; give its next value to set_next().
  Result<ValueId> state(const std::string& name, TensorType type, const std::function<double(int64_t)>& element);
  void set_next(ValueId state, ValueId next);

  Result<ValueId> ints(const std::vector<int64_t>& elements);
  /// The same with i64[1] `size` at place `at`.
  Result<ValueId> with_size(const std::vector<int64_t>& elements, size_t at, ValueId size);
  /// An element of such a tensor.
  Result<ValueId> scalar(const TensorType& like, double value);
  Result<ValueId> constant(const std::string& name, TensorType type, const std::function<double(int64_t)>& element);
  /// i64[1]: elements of the chunk, and of all chunks before it (kMostSeen, if there were more), times up / down.
  Result<ValueId> chunk(int64_t up, int64_t down);
  Result<ValueId> seen(int64_t up, int64_t down);
  /// i64[n]: 0, 1, ... for the elements of the chunk.
  Result<ValueId> within(int64_t up, int64_t down);
  /// i64[1]: the place in the chunk of v[0], which is the number of elements before it that are still to come; exact
  /// down to -`back`, which is what it is from then on at the latest.
  Result<ValueId> early(const Flow& flow, int64_t back = 0);
  /// i64[1]: the place in the chunk of v's last element, behind all of them unless the input has ended.
  Result<ValueId> last_within(const Flow& flow);

  /// The name of the node that is being written.
  std::string node_name;
  SourceLocation source;

 private:
  /// i64[1]: count * up / down.
  Result<ValueId> scaled(ValueId count, int64_t up, int64_t down);
  std::string stream_;
  ValueId input_;
  int axis_;
  int64_t tail_;
  std::vector<ValueId> mapped_;
  ValueId chunk_ = kNoValue, seen_ = kNoValue, far_ = kNoValue;
  std::map<std::pair<int64_t, int64_t>, ValueId> within_;
  std::map<std::tuple<ValueId, int64_t, int64_t>, ValueId> scaled_;           ///< by count, up and down
  std::map<std::tuple<ValueId, int64_t, double, int64_t>, ValueId> delayed_;  ///< by value, delay, fill, new delay
  std::map<std::tuple<ValueId, int64_t, int64_t, double>, ValueId> masked_;   ///< by value, first and last place
  std::map<std::vector<int64_t>, ValueId> ints_;
};

}  // namespace pinnace
