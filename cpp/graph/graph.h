// Graph: the one representation of a model between import and the back ends. Values in single assignment, nodes in
// execution order, constants, state, nested graphs as attributes. It knows no operator: names are text, `ops/` knows
// them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <pinnace/tensor.h>

#include "base/files/stored_bytes.h"
#include "base/memory.h"

namespace pinnace {

class Graph;
using ValueId = int32_t;
/// An optional input that is left out.
inline constexpr ValueId kNoValue = -1;

/// Immutable bytes of a constant, dense row-major, shared by whoever uses them. `owner` keeps them alive: a Buffer, a
/// mapped file, an array of Python.
class Constant {
 public:
  Constant(std::shared_ptr<const void> owner, const void* data, size_t bytes)
      : owner_(std::move(owner)), data_(static_cast<const std::byte*>(data)), bytes_(bytes) {}
  /// Takes the buffer.
  static std::shared_ptr<const Constant> of(Buffer buffer);
  /// Copies the bytes.
  static Result<std::shared_ptr<const Constant>> copy_of(const void* data, size_t bytes);

  /// Bytes of a file, which `owner` keeps.
  Constant(std::shared_ptr<const void> owner, std::unique_ptr<const StoredBytes> stored)
      : owner_(std::move(owner)),
        data_(stored->bytes().data()),
        bytes_(stored->bytes().size()),
        stored_(std::move(stored)) {}

  /// Where the bytes are. Whoever reads what lies there calls check() first; the plan does so for what it hands on.
  const std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  /// kCorruptFile if the bytes come from a file and are damaged. Cheap after the first call; thread-safe.
  Status check() const { return stored_ ? stored_->check() : Status(); }
  /// Memory of a mapped file goes back to the system until somebody reads it again.
  void drop_pages() const {
    if (stored_) stored_->drop_pages();
  }

 private:
  std::shared_ptr<const void> owner_;
  const std::byte* data_;
  size_t bytes_;
  std::unique_ptr<const StoredBytes> stored_;
};
using ConstantPtr = std::shared_ptr<const Constant>;

/// A nested graph is self-contained: what its nodes need from outside enters through its inputs, and the node that
/// holds it passes those values explicitly.
using GraphPtr = std::shared_ptr<Graph>;

/// An alternative that nothing holds. With it a variant may be without a value; without it GCC 12's takes itself for
/// one that always has one, and when a copy runs out of memory half-way it destroys a value that was never made.
struct NeverHeld {
  NeverHeld() = delete;
  NeverHeld(const NeverHeld&) noexcept {}  // NOLINT: not trivial on purpose, which is what the variant goes by
  NeverHeld& operator=(const NeverHeld&) noexcept { return *this; }
  bool operator==(const NeverHeld&) const { return true; }
};

/// The value of an attribute. The order of the alternatives is stable: files use the index as tag.
using Attr = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                          std::vector<std::string>, GraphPtr, NeverHeld>;
enum class AttrKind : uint8_t { kInt, kFloat, kString, kInts, kFloats, kStrings, kGraph };
inline AttrKind attr_kind(const Attr& attr) {
  return static_cast<AttrKind>(attr.index());
}
const char* attr_kind_name(AttrKind kind);

/// Where a node comes from in the user's code. Empty fields are unknown.
struct SourceLocation {
  std::string file;    ///< file of the model's code, "net.py"
  int32_t line = 0;    ///< 1-based; 0 is unknown
  std::string module;  ///< path of the module, "layers.3.conv1"
  /// "net.py:41", or empty.
  std::string text() const;
  bool operator==(const SourceLocation&) const = default;
};

/// One application of an operator. Attributes are sorted by name and hold only what differs from the operator's default
/// or has none.
struct Node {
  std::string op;  ///< a name of ops.inc: "conv"
  int32_t version = 1;
  std::string name;  ///< the source model's name of the node; unique within its graph
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;  ///< never kNoValue: unused outputs are values that nobody reads
  std::vector<std::pair<std::string, Attr>> attrs;
  SourceLocation source;

  /// The attribute, or null if it is not set.
  const Attr* attr(std::string_view name) const;
  Attr* attr(std::string_view name);
  /// Sets or replaces, keeping the order by name.
  void set_attr(std::string_view name, Attr value);
  void remove_attr(std::string_view name);
};

/// A tensor of the graph: an input, a constant, the old value of a state, or an output of the one node that makes it.
struct Value {
  std::string name;  ///< unique within its graph
  TensorType type;
  ConstantPtr constant;  ///< null if not a constant
};

/// A value that a session keeps between runs. It is read as `input`; after a successful run it becomes `output`.
struct State {
  std::string name;
  ValueId input = kNoValue;
  ValueId output = kNoValue;
  ConstantPtr initial;  ///< dense bytes of the type of `input`, which is concrete
};

/// Values and nodes are addressed by index; indices of values stay valid until compact(). Nodes stand in an order in
/// which every value is made before it is read; verify() checks that and all else that is said here.
class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  Graph(const Graph&) = delete;  // use clone(): nested graphs are copied too
  Graph& operator=(const Graph&) = delete;
  /// A deep copy that shares the bytes of constants.
  Graph clone() const;

  std::string name;
  std::vector<Symbol> symbols;  ///< of the outermost graph; nested graphs use the same indices and have an empty list
  std::vector<Value> values;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<std::string> output_names;  ///< as many as outputs; a value may be several outputs
  std::vector<State> states;

  Value& value(ValueId id) { return values[static_cast<size_t>(id)]; }
  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }

  /// A new value; if `name` is taken or empty, a number is appended.
  ValueId add_value(std::string name, TensorType type);
  /// A new value that is an input.
  ValueId add_input(std::string name, TensorType type);
  ValueId add_constant(std::string name, TensorType type, ConstantPtr bytes);
  /// A constant from elements; the vector's size must be that of `shape`.
  template <class T>
  Result<ValueId> add_constant_of(std::string name, DType dtype, Shape shape, std::span<const T> elements) {
    PINNACE_ASSIGN(ConstantPtr bytes, Constant::copy_of(elements.data(), elements.size_bytes()));
    return add_constant(std::move(name), TensorType{dtype, std::move(shape), nullptr}, std::move(bytes));
  }
  void add_output(std::string name, ValueId id);
  /// Appends a node; a taken or empty name gets a number appended. Returns it; the pointer stays valid until it is
  /// erased.
  Node* add_node(std::string op, int32_t version, std::string name, std::vector<ValueId> inputs,
                 std::vector<ValueId> outputs);
  /// As add_node, but before nodes[index].
  Node* insert_node(size_t index, std::string op, int32_t version, std::string name, std::vector<ValueId> inputs,
                    std::vector<ValueId> outputs);

  /// Every node input, graph output and state output that is `from` becomes `to`.
  void replace_uses(ValueId from, ValueId to);
  /// Removes nodes for which `dead` is true, in one sweep.
  void erase_nodes(const std::vector<bool>& dead);
  /// Drops values that nothing mentions, in nested graphs too, and renumbers the rest in order. Invalidates ValueIds.
  void compact();

  /// Names for the next add_*: true if a value (node) of that name exists.
  bool has_value_name(std::string_view name) const;
  bool has_node_name(std::string_view name) const;

 private:
  std::string unique_name(std::string name, bool of_node);
  struct Names;
  std::shared_ptr<Names> names_;  ///< index of names, rebuilt when out of date
};

/// Who makes and who reads each value; a snapshot of a graph for passes and planners. Indices are of Graph::nodes.
struct Uses {
  explicit Uses(const Graph& graph);
  std::vector<int32_t> producer;              ///< per value: node index, or -1 (input, constant, state)
  std::vector<std::vector<int32_t>> readers;  ///< per value: node indices in order, one per mention
  std::vector<int32_t> exits;                 ///< per value: how often it is a graph output or a state's output
  /// True if exactly one node mention reads the value and it leaves the graph nowhere.
  bool only_one_reader(ValueId id) const { return readers[id].size() == 1 && exits[id] == 0; }
};

/// Checks everything that Graph promises without knowing operators: ids in range, single assignment, order (which
/// excludes cycles), unique names, constants' sizes, state, symbols, nested graphs, attribute order. The first
/// violation is kInvalidArgument with rule id G-n, node or value, and the offending number.
Status verify(const Graph& graph);

/// Constant::check() for every constant and initial state, of nested graphs too: before all of them are read.
Status check_constants(const Graph& graph);

/// The text form; see docs/text_form.md for the grammar. Constants over `max_constant_bytes` are printed as a hash and
/// cannot be parsed back; by default everything is printed.
std::string print(const Graph& graph, size_t max_constant_bytes = SIZE_MAX);
/// The inverse of print: parse(print(g)) prints the same. Errors carry line and column.
Result<Graph> parse(std::string_view text);

/// True if both graphs print the same; cheaper than printing.
bool same(const Graph& a, const Graph& b);

}  // namespace pinnace
