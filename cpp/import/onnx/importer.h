// The state of an import: what all graphs of a model share, a graph under construction, and the names that are visible
// in a piece of the source.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "import/import.h"
#include "import/onnx/tensor.h"
#include "import/source_names.h"

namespace pinnace::onnx {

/// A value that could not be made because its node could not be imported; what reads it is checked no further.
inline constexpr ValueId kPoisoned = -2;

/// A sequence or an optional value. Which values are in it is known while the model is read; the graph has only those.
struct Listed {
  bool optional = false;          ///< at most one element, which may itself be a sequence
  std::vector<ValueId> elements;  ///< tensors of one element type
};
/// Names of Listed values are negative: kFirstListed, kFirstListed - 1, …
inline constexpr ValueId kFirstListed = -3;
inline bool is_listed(ValueId id) {
  return id <= kFirstListed;
}
/// Elements of all sequences of a model. Each sequence that a node makes has its own list: inserting one element after
/// another takes the square of their number.
inline constexpr int64_t kMaxListed = 4'000'000;

/// Opsets by domain; "ai.onnx" is spelt "".
using Opsets = std::map<std::string, int64_t, std::less<>>;

/// Shared by all graphs of one import.
struct Import {
  const ImportOptions& options;
  ExternalData external;
  std::map<std::string, const proto::FunctionProto*> functions;  ///< by function_key()
  std::vector<NodeProblem> problems;
  std::vector<std::string> notes;
  int64_t nodes = 0;  ///< looked at so far
  /// How many may be looked at in all. Functions that call functions, and loop bodies that are read again, could
  /// multiply a small file without end.
  int64_t node_limit = 0;
  int64_t sparse_budget = kSparseBytes;  ///< of read_sparse
  std::vector<Listed> lists;
  int64_t listed = 0;                      ///< elements of all lists, and the lists themselves
  std::vector<Symbol>* symbols = nullptr;  ///< of the whole model: nested graphs have none of their own
  /// Dynamic dimensions that are taken to be at least 2, with the node that asks for it (dynamic_ranks.h).
  std::vector<std::pair<std::string, std::string>> at_least_two = {};

  ValueId add_list(Listed list) {
    listed += 1 + static_cast<int64_t>(list.elements.size());
    lists.push_back(std::move(list));
    return kFirstListed - static_cast<ValueId>(lists.size() - 1);
  }
  const Listed& list(ValueId id) const { return lists[static_cast<size_t>(kFirstListed - id)]; }

  void refuse(std::string node, std::string op, const SourceLocation& source, std::string rule,
              std::string value = {}) {
    problems.push_back(
        {std::move(node), std::move(op), source.text(), std::move(rule), std::move(value), source.module});
  }
};

inline constexpr const char* kOnlyTensorsLeave = "sequences and optional values cannot leave a graph, only tensors";

std::string function_key(const std::string& domain, const std::string& name, const std::string& overload);
/// "ai.onnx" is "".
std::string canonical_domain(const std::string& domain);

/// Where a piece of the source stands: its opsets and, within a function, the call.
struct Frame {
  Opsets opsets;
  std::string prefix;  ///< of names: "call/"
  const Frame* caller = nullptr;
  const proto::FunctionProto* function = nullptr;
  std::map<std::string, const proto::AttributeProto*> attributes;  ///< what the call binds the function's attributes to
};

/// A graph under construction, with the types and contents of its values so far.
struct GraphBuilder {
  explicit GraphBuilder(Import& shared) : import(shared) {}
  Import& import;
  Graph graph;
  TypeInference state;
  SourceNames names;                                  ///< of values that the source's own nodes make
  std::vector<std::pair<ValueId, ValueId>> captures;  ///< value of the enclosing graph, input of this one

  ValueId add_input(std::string name, TensorType type);
  ValueId add_constant(std::string name, TensorType type, ConstantPtr data);
  /// Makes a value of the enclosing graph known here: as an input, or as a constant where its contents are known.
  /// Of a Listed value every element.
  ValueId capture(const GraphBuilder& from, ValueId id, const std::string& name);
  const TensorType& type(ValueId id) const { return state.types[static_cast<size_t>(id)]; }
  const ConstantPtr& data(ValueId id) const { return state.data[static_cast<size_t>(id)]; }
  /// Infers `node`, the last of the graph, and writes the types of its outputs.
  Status infer_last(const Node& node);
};

/// Names of values that a piece of the source can see. A nested graph sees those of the graph around it; a function
/// sees only its own.
struct Scope {
  GraphBuilder& builder;
  const Frame& frame;
  Scope* outer = nullptr;
  std::unordered_map<std::string, ValueId> names;

  /// kCorruptFile if the scope has that name.
  Status define(const std::string& name, ValueId id);
  /// The value, kPoisoned, or kNoValue for the empty name. A value of an enclosing graph becomes an input of this one,
  /// or a constant where its contents are known. kCorruptFile if nothing has that name; `reader` says who asked.
  Result<ValueId> find(const std::string& name, const std::string& reader);

 private:
  const ValueId* look_up(const std::string& name);
};

/// All nodes of a piece of the source into scope.builder, in an order in which every value is made before it is read.
/// What cannot be imported is recorded, unless nothing that is `leaving` needs it. kCorruptFile: names that are defined
/// twice or never, cycles.
Status import_nodes(Scope& scope, const google::protobuf::RepeatedPtrField<proto::NodeProto>& nodes,
                    std::span<const std::string_view> leaving);
std::vector<std::string_view> names_of(const google::protobuf::RepeatedPtrField<proto::ValueInfoProto>& values);

/// Initialisers of a graph become constants of scope.builder.
Status import_initializers(Scope& scope, const proto::GraphProto& graph);

/// A nested graph. `bind` gives the body's inputs their values; outputs are in the body's order. Null if something in
/// it could not be imported; that has been recorded.
using Bind = std::function<Status(GraphBuilder& builder, Scope& scope)>;
Result<std::unique_ptr<GraphBuilder>> import_body(Scope& outer, const proto::GraphProto& body, const Bind& bind);

/// One node: function calls are inlined, others go through the table of mappings.
Status import_node(Scope& scope, const proto::NodeProto& node, int index);

/// File, line and module that the exporter of torch or the user has left in a node.
SourceLocation source_of(const proto::NodeProto& node);

}  // namespace pinnace::onnx
