// Builder: turns one graph of an exported program into one of ours, node after node. It knows names, symbols, weights,
// and which tensors share memory (so that in-place operators keep their meaning); what an operator means is in the
// files that mapping.h lists.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "import/import.h"
#include "import/source_names.h"
#include "import/torch/exported/parts.h"
#include "import/torch/exported/program.h"

namespace pinnace::torch_import {

/// A number of Python: known, or computed by the graph.
struct Scalar {
  enum class Kind : uint8_t { kInt, kFloat, kBool };
  Kind kind = Kind::kInt;
  bool known = true;
  int64_t integer = 0;       ///< kInt and kBool, if known
  double real = 0;           ///< kFloat, if known
  ValueId value = kNoValue;  ///< if not known: i64[1], f64[1] or bool[1]
  static Scalar of_int(int64_t n) { return {.integer = n}; }
  static Scalar of_float(double d) { return {.kind = Kind::kFloat, .real = d}; }
  static Scalar of_bool(bool b) { return {.kind = Kind::kBool, .integer = b}; }
  static Scalar of_value(Kind kind, ValueId id) { return {.kind = kind, .known = false, .value = id}; }
  double number() const { return kind == Kind::kFloat ? real : static_cast<double>(integer); }
  bool is(int64_t n) const { return known && kind != Kind::kFloat && integer == n; }
};

/// What the graphs of one program share.
struct Session {
  const ImportOptions& options;
  const ProgramDef& program;
  Parts& parts;
  std::string model;  ///< its name among the parts
  Payloads weights, constants;
  std::map<std::string, ConstantPtr, std::less<>> storages;    ///< by name of the part
  std::map<std::string, Expression, std::less<>> expressions;  ///< parsed, by text
  std::vector<Symbol> symbols;
  std::set<int32_t> divided;  ///< symbols of which an assertion says what they are multiples of
  std::vector<NodeProblem> problems;
  std::vector<std::string> notes;
  Status fatal;  ///< the archive is damaged, or memory ran out: nothing else matters then
  int node_count = 0;
  uint64_t copied_bytes = 0;  ///< of weights that could not be used in place
  uint64_t table_bytes = 0;   ///< of constants that are no weights of the file, as index tables are

  /// Parsed once.
  Result<const Expression*> expression(const std::string& text);
  /// The size as a dimension of an input: a number, a symbol (made here), never unknown.
  Result<Dim> input_dim(const SizeDef& size);
  /// As far as symbols of inputs say it, else unknown.
  Dim dim(const SizeDef& size);
  void note(std::string text);
};

/// How a tensor shares memory with the one that it was made from.
enum class Sharing : uint8_t {
  kNone,
  kSame,       ///< the same elements: detach, alias, contiguous of a contiguous tensor
  kView,       ///< some or all elements in another arrangement; Builder::write_back knows how
  kUncertain,  ///< torch decides at run time
};

struct Scope;

/// A tensor of the source, of which the values change when something is written into it in place.
struct Handle {
  enum class Origin : uint8_t { kComputed, kUserInput, kState, kConstant };
  ValueId value = kNoValue;
  Origin origin = Origin::kComputed;
  std::string origin_name;  ///< of the input, buffer or parameter
  int input = -1;           ///< kConstant and kState: index of its input spec; loaded when first read
  int root = -1;            ///< the handle that owns the memory; itself if it is one
  int parent = -1;          ///< what it is a view of
  uint32_t version = 0;     ///< of a root: how often it was written to
  uint32_t seen = 0;        ///< of a view: the root's version that `value` shows
  Sharing sharing = Sharing::kNone;
  const NodeDef* node = nullptr;  ///< of a view: what made it, to make it again
  Scope* scope = nullptr;
  size_t output = 0;
  bool complex = false;  ///< `value` has one dimension more, of real and imaginary part
  bool missing = false;  ///< its node could not be imported
  bool unclear = false;  ///< of a root: something was written that may or may not share its memory
};

/// Names of one graph of the source. An inlined one has its own.
struct Scope {
  /// Takes a graph of the source, with the names that its nodes get by their modules.
  void begin(const GraphDef& graph, const std::string& before_names = {});
  const GraphDef* def = nullptr;
  std::map<std::string, int, std::less<>> tensors;  ///< to handles
  std::map<std::string, Scalar, std::less<>> scalars;
  std::string prefix;                     ///< before names of values, "submod_1."
  std::vector<std::string> module_names;  ///< per node of `def`; empty for those that keep torch's name

  /// What the graph calls a node of `def`: "features.3.conv.1", or torch's name.
  const std::string& name_of(const NodeDef& node) const;
  /// What it calls something that the mapping of a node adds: "features.3.conv.1:reshape", "linear.reshape".
  std::string part_name(const NodeDef& node, std::string_view part) const;
  /// What it calls the node's output number `output` of `outputs`, which torch calls `name`.
  std::string value_name(const NodeDef& node, const std::string& name, size_t output, size_t outputs) const;
};

class Call;
struct Mapping;

class Builder {
 public:
  Builder(Session& session, Graph& graph)
      : session(session), graph(graph), type_inference(begin_type_inference(graph)) {}

  Session& session;
  Graph& graph;
  TypeInference type_inference;

  /// The program's own graph: inputs, nodes, outputs, states.
  Status build_program();
  /// A nested graph: `leading` inputs that the source does not have, then one per input of `def` of that type; then its
  /// nodes. Gives the values of its outputs, which the caller makes outputs of the graph.
  Result<std::vector<ValueId>> build_body(const GraphDef& def, const std::vector<TensorType>& leading,
                                          const std::vector<TensorType>& types);
  /// Types of values as inferred, names as in the source; nodes that nothing needs are dropped.
  Status finish();
  /// Runs the nodes of `def` in this graph, its inputs bound by name; its outputs are then in the scope.
  Result<Scope*> inline_graph(const GraphDef& def, std::map<std::string, int, std::less<>> tensors,
                              std::map<std::string, Scalar, std::less<>> scalars, const std::string& name);

  // ------------------------------------------------------------------------------------------------- tensors
  int add_handle(Handle handle);
  Handle& handle(int index) { return handles_[static_cast<size_t>(index)]; }
  /// The tensor's present value. kInvalidArgument if it cannot be known.
  Result<ValueId> read(int index);
  /// Writes `value`, of the tensor's own type, into it and everything that it is a view of.
  Status write(int index, ValueId value, const NodeDef& node);

  const TensorType& type(ValueId id) const { return type_inference.types[static_cast<size_t>(id)]; }
  /// Adds a node and infers its outputs. Attributes that equal the default are left out.
  Result<std::vector<ValueId>> emit(std::string_view op, std::vector<ValueId> inputs, int outputs,
                                    std::vector<std::pair<std::string, Attr>> attrs, const std::string& name,
                                    const SourceLocation& source);
  /// A constant that may be shared: equal contents of up to 64 KiB give the same value. kUnsupported: those of the
  /// model take more than 16 MiB and twice the file in all, which a few numbers of a file can ask for.
  Result<ValueId> constant(DType dtype, const Shape& shape, const void* data, size_t bytes, const std::string& name);
  /// Notes what the source calls `id`, if it was made since value `first_value`, and the node that made it: finish()
  /// gives these names, when it is known which others there are.
  void note_name(ValueId id, size_t first_value, const std::string& name, const std::string& node_name);

 private:
  friend class Call;
  Status bind_inputs(Scope& scope);
  Status bind_outputs(Scope& scope);
  void run_nodes(Scope& scope);
  void run_node(Scope& scope, const NodeDef& node);
  void bind_results(Call& call, Scope& scope, const NodeDef& node, bool in_place);
  void miss(Scope& scope, const NodeDef& node);
  /// True if a tensor that the node takes or gives is complex: then it is mapped by functions that know of that.
  bool has_complex(const Scope& scope, const NodeDef& node);
  Result<ValueId> load(Handle& handle);
  std::set<std::string> written_buffers() const;

  std::deque<Handle> handles_;
  std::deque<Scope> scopes_;
  std::map<std::string, ValueId> constants_;
  SourceNames source_names_;
  std::vector<std::pair<int, std::string>> states_;  ///< handle and name of each state
  int depth_ = 0;
};

/// The tensor that a payload describes, contiguous; storages are shared where their bytes can be used in place.
Result<ConstantPtr> load_payload(Session& session, const std::string& name, const PayloadDef& payload,
                                 TensorType& type);

}  // namespace pinnace::torch_import
