// What an operator is: OpDef holds its schema, its shape rule and its reference code; NodeView is what both are given.
// One operator per file; ops.inc lists them. How to add one: docs/adding_an_operator.md.
#pragma once

#include <cassert>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "base/half.h"
#include "base/status.h"
#include "graph/graph.h"
#include "ops/threads.h"

namespace pinnace {

// ---------------------------------------------------------------------------------------------------------- schema

/// A set of element types.
using DTypes = uint32_t;
template <class... D>
constexpr DTypes dtypes(D... d) {
  return (0u | ... | (1u << static_cast<int>(d)));
}
inline constexpr DTypes kF32 = dtypes(DType::kF32), kF16 = dtypes(DType::kF16), kBF16 = dtypes(DType::kBF16);
inline constexpr DTypes kF64 = dtypes(DType::kF64), kBool = dtypes(DType::kBool);
inline constexpr DTypes kI8 = dtypes(DType::kI8), kU8 = dtypes(DType::kU8), kI32 = dtypes(DType::kI32);
inline constexpr DTypes kI64 = dtypes(DType::kI64), kI4 = dtypes(DType::kI4), kU4 = dtypes(DType::kU4);
inline constexpr DTypes kFloats = kF32 | kF16 | kBF16 | kF64;
inline constexpr DTypes kInts = kI8 | kU8 | kI32 | kI64 | dtypes(DType::kI16, DType::kU16, DType::kU32, DType::kU64);
inline constexpr DTypes kNumbers = kFloats | kInts;
inline constexpr DTypes kAny = kNumbers | kBool;  ///< all but those that are only stored
inline constexpr DTypes kPackedInts = kI4 | kU4 | dtypes(DType::kI2, DType::kU2);
inline constexpr DTypes kFloats8 =
    dtypes(DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ, DType::kF8E8M0);
inline constexpr DTypes kSmallFloats = kFloats8 | dtypes(DType::kF6E2M3, DType::kF6E3M2, DType::kF4E2M1);
inline constexpr DTypes kBytewise = kAny | kFloats8;  ///< whole bytes: what elements can be moved one by one
inline constexpr DTypes kEvery = kAny | kPackedInts | kSmallFloats;
inline constexpr DTypes kIndices = kI32 | kI64;

enum class Arity : uint8_t {
  kRequired,
  kOptional,  ///< may be kNoValue or, at the end, missing
  kVariadic,  ///< last one only: zero or more
};

/// A string of a schema: half the size of a string_view, and an empty one needs no relocation when a library is loaded.
class Literal {
 public:
  constexpr Literal() = default;
  constexpr Literal(const char* text) : text_(text) {}                        // NOLINT: implicit on purpose
  constexpr operator std::string_view() const { return text_ ? text_ : ""; }  // NOLINT: implicit on purpose

 private:
  const char* text_ = nullptr;
};

/// One input. Inputs with the same type letter must have the same element type; 0 is no constraint.
struct InputDef {
  Literal name;
  DTypes types = kAny;
  char type_letter = 0;
  Arity arity = Arity::kRequired;
};

/// One attribute. Lists default to empty; a required attribute has no default.
struct AttrDef {
  union Default {
    int64_t number = 0;
    double real;
    const char* text;
  };
  Literal name;
  AttrKind kind = AttrKind::kInt;
  bool required = false;
  Default value = {};  ///< of kInt, kFloat, kString

  int64_t int_default() const {
    assert(kind == AttrKind::kInt);
    return value.number;
  }
  double float_default() const {
    assert(kind == AttrKind::kFloat);
    return value.real;
  }
  std::string_view string_default() const {
    assert(kind == AttrKind::kString);
    return value.text;
  }
};
constexpr AttrDef int_attr(Literal name, int64_t value) {
  return {name, AttrKind::kInt, false, {.number = value}};
}
constexpr AttrDef float_attr(Literal name, double value) {
  return {name, AttrKind::kFloat, false, {.real = value}};
}
constexpr AttrDef string_attr(Literal name, const char* value) {
  return {name, AttrKind::kString, false, {.text = value}};
}
constexpr AttrDef ints_attr(Literal name) {
  return {name, AttrKind::kInts};
}
constexpr AttrDef floats_attr(Literal name) {
  return {name, AttrKind::kFloats};
}
constexpr AttrDef strings_attr(Literal name) {
  return {name, AttrKind::kStrings};
}
constexpr AttrDef required_attr(Literal name, AttrKind kind) {
  return {name, kind, true};
}

// ------------------------------------------------------------------------------------------------------ node views

/// A concrete tensor in memory: dense, row-major. A left-out optional input has no type and no data.
struct TensorView {
  const TensorType* type = nullptr;
  std::byte* bytes = nullptr;

  bool present() const { return type != nullptr; }
  DType dtype() const { return type->dtype; }
  int rank() const { return type->rank(); }
  /// Size of dimension i; negative i counts from the end.
  int64_t dim(int i) const { return type->shape[static_cast<size_t>(i < 0 ? i + rank() : i)].size; }
  int64_t elements() const { return type->elements(); }
  template <class T>
  T* data() const {
    return reinterpret_cast<T*>(bytes);
  }
};

/// What is known of one element of an integer tensor before the model runs: its value, or that it is the size of a
/// symbol, or nothing.
struct KnownInt {
  bool known = false;
  int64_t value = 0;
  int32_t symbol = -1;
  /// As a dimension; a negative value (never a size) becomes unknown.
  Dim dim() const { return known ? (value >= 0 ? Dim(value) : Dim()) : symbol >= 0 ? Dim::of_symbol(symbol) : Dim(); }
};

struct OpDef;
class OpTable;  // ops/type_inference.h

/// One node as shape rules, reference code and kernels see it: attributes with defaults filled in, types of the inputs,
/// and contents of inputs as far as they are known.
class NodeView {
 public:
  /// types[i] is null for a left-out input; data may be empty (nothing known) or have one entry per input, null where
  /// unknown; known likewise holds what is partly known of integer tensors. declared: types that the graph states for
  /// the outputs (their quantisation cannot be inferred); may be empty. All borrowed.
  NodeView(const Node& node, const OpDef& op, std::span<const TensorType* const> types,
           std::span<const void* const> data = {}, std::span<const TensorType* const> declared = {},
           std::span<const std::vector<KnownInt>* const> known = {})
      : node_(node), op_(op), types_(types), data_(data), declared_(declared), known_(known) {}

  const Node& node() const { return node_; }
  const OpDef& op() const { return op_; }
  /// Operators that nested graphs of this node may use beside the built-in ones; null if there are none. Borrowed.
  const OpTable* ops() const { return ops_; }
  void set_ops(const OpTable* ops) { ops_ = ops; }
  /// Threads that reference code may use; the caller's alone unless set.
  const Threads& threads() const { return threads_; }
  void set_threads(const Threads& threads) { threads_ = threads; }
  int input_count() const { return static_cast<int>(types_.size()); }
  int output_count() const { return static_cast<int>(node_.outputs.size()); }
  bool has_input(int i) const { return i < input_count() && types_[static_cast<size_t>(i)] != nullptr; }
  const TensorType& input(int i) const {
    assert(has_input(i));
    return *types_[static_cast<size_t>(i)];
  }
  /// What the schema calls input i.
  std::string_view input_name(int i) const;
  /// The quantisation that the graph declares for output i, null if none.
  std::shared_ptr<const Quantization> output_quantization(int i) const;

  /// Contents of input i if known, else null. Dense row-major.
  const void* input_data(int i) const {
    return static_cast<size_t>(i) < data_.size() ? data_[static_cast<size_t>(i)] : nullptr;
  }
  /// Contents of an integer or bool input as int64, if all are known and fit.
  std::optional<std::vector<int64_t>> input_ints(int i) const;
  /// Contents of an f32, f16, bf16, f64 input as double, if known.
  std::optional<std::vector<double>> input_floats(int i) const;
  /// What is known of each element of an integer input of known size: as input_ints where that has a value, else
  /// partial knowledge, else nothing.
  std::optional<std::vector<KnownInt>> input_known(int i) const;
  /// True once either of the two was asked for contents that are not known. Rules are asked by one thread.
  bool asked_for_unknown_ints() const { return asked_for_unknown_ints_; }

  // Attributes: the node's, else the default of the schema. The kind is asserted: check_node() has run.
  int64_t attr_int(std::string_view name) const;
  double attr_float(std::string_view name) const;
  std::string_view attr_string(std::string_view name) const;
  std::span<const int64_t> attr_ints(std::string_view name) const;
  std::span<const double> attr_floats(std::string_view name) const;
  std::span<const std::string> attr_strings(std::string_view name) const;
  const Graph& attr_graph(std::string_view name) const;
  bool has_attr(std::string_view name) const { return node_.attr(name) != nullptr; }

  /// kInvalidArgument "conv 'stem/conv1': <parts>". Give the rule and the offending values.
  template <class... Parts>
  [[gnu::always_inline]] Status error(const Parts&... parts) const {
    return with_parts([this](const PartKind* kinds, const Part* list) { return error_of(kinds, list); }, parts...);
  }
  /// "conv 'stem/conv1'"
  std::string label() const;

  /// `axis` in [-rank, rank) made non-negative, or the error that names it.
  Result<int> axis(int64_t axis, int rank) const;
  /// Several axes, each checked, none twice; sorted.
  Result<std::vector<int>> axes(std::span<const int64_t> axes, int rank) const;

 private:
  [[gnu::cold]] Status error_of(const PartKind* kinds, const Part* parts) const;

  const Node& node_;
  const OpDef& op_;
  std::span<const TensorType* const> types_;
  std::span<const void* const> data_;
  std::span<const TensorType* const> declared_;
  std::span<const std::vector<KnownInt>* const> known_;
  const OpTable* ops_ = nullptr;
  Threads threads_;
  mutable bool asked_for_unknown_ints_ = false;
};

/// Type of the only output. Inputs' arity and element types and the attributes' kinds were checked against the schema.
/// Dimensions of inputs may be symbols or unknown; unknown sizes give unknown results, never an error. With concrete
/// inputs and all contents known, the result is concrete: that is how sizes that depend on data are found.
using TypeFn = Result<TensorType> (*)(const NodeView& node);
/// The same for several outputs, one entry each.
using TypesFn = Status (*)(const NodeView& node, std::span<TensorType> outputs);

/// Computes every output in full from every input. All types are concrete and are what the shape rule gave; outputs do
/// not overlap inputs unless in_place allows it. Plain and correct: sums in double, results rounded once to the output
/// type. Values that no shape rule could check (indices out of range) are kInvalidArgument; nothing outside is touched.
/// What takes long is divided by node.threads(); results and errors do not depend on how many there are.
using ReferenceFn = Status (*)(const NodeView& node, std::span<const TensorView> inputs,
                               std::span<const TensorView> outputs);

/// Properties that passes, planners and back ends ask of operators as groups; a set of bits.
using Traits = uint32_t;
struct Trait {
  /// An element of the result depends on the elements of the inputs at the same place, after broadcasting, alone.
  static constexpr Traits kElementwise = 1 << 0;
  /// Output 0 has the bytes of input 0, only its type differs: planners need not copy.
  static constexpr Traits kView = 1 << 1;
  /// A view that gives the elements another shape, and nothing else.
  static constexpr Traits kReshapes = 1 << 2;
  /// Results are elements of the inputs, or a constant, unchanged.
  static constexpr Traits kMoves = 1 << 3;
  /// Elements are compared with each other and not computed with: results are some of them, their places, or booleans.
  static constexpr Traits kCompares = 1 << 4;
  /// Gives numbers another element type.
  static constexpr Traits kConverts = 1 << 5;
  /// Output 0 is input 0 wherever both have the same type.
  static constexpr Traits kKeepsSameType = 1 << 6;
  /// Takes any number of inputs, and gives a single one as it is.
  static constexpr Traits kKeepsOnlyInput = 1 << 7;
  /// Sums of products of input 0 with weights, input 1, perhaps with a bias, input 2: conv, conv_transpose, gemm,
  /// mat_mul.
  static constexpr Traits kProduct = 1 << 8;
  /// Goes step by step along a sequence, with weights as inputs 1 and 2 and a state.
  static constexpr Traits kRecurrent = 1 << 9;
  /// Reduces axes of input 0 to one element each.
  static constexpr Traits kReduction = 1 << 10;
  /// Runs nested graphs.
  static constexpr Traits kControlFlow = 1 << 11;
  /// Has the same meaning on quantised types as between dequantize_linear and quantize_linear, but for rounding: the
  /// pass fold_quantization may put one for the other.
  static constexpr Traits kFoldsQuantization = 1 << 12;
  /// How large the results are depends on contents: the shape rule runs the operator where they are known.
  static constexpr Traits kRunsToCount = 1 << 13;
};

/// Which row of unary.inc an operator is; ops/unary_kind.h has the enumerators. 0 is none.
enum class UnaryKind : uint8_t;

/// How the time that reference code takes grows, beyond one pass over its operands (ops/work.h).
enum class Work : uint8_t {
  kPlain,       ///< a pass
  kConstant,    ///< reads no contents
  kCopied,      ///< a pass that only moves or converts, however many inputs there are
  kSorted,      ///< a pass with a logarithm of the sizes in it, or a transcendental function of many terms
  kMatrix,      ///< y times the last dimension of input 0
  kSquare,      ///< elimination: elements times the last dimension
  kWindow,      ///< every output reads what one output channel has of weights; all weights are read for every image
  kScattered,   ///< every input meets what one input channel has of weights
  kPair,        ///< every output may read every input
  kSquared,     ///< every element of the inputs may meet every other
  kResize,      ///< axes one after another: between them the tensor may be larger than both
  kEinsum,      ///< every combination of the letters
  kSamples,     ///< outputs times the samples of a bin
  kVectorizer,  ///< all pairs of places, for every length of n-grams
};

/// Elements of a type, and the size of its last dimension; sizes that are not known count as 1.
double elements_if_known(const TensorType& type);
double last_if_known(const TensorType& type);

/// Multiplications and additions of a node of these types (null: left out). What is not known counts as 1.
using MultiplyAddsFn = double (*)(std::span<const TensorType* const> inputs, const TensorType& y);

/// One operator. Every field but name, inputs and type (or types) has a usable default.
struct OpDef {
  std::string_view name;
  int32_t version = 1;
  /// Lists lie beside the constant that is initialised with them, in just the size they need; to assign to one, give a
  /// list that lives as long.
  std::initializer_list<InputDef> inputs = {};
  std::initializer_list<AttrDef> attrs = {};
  int min_outputs = 1;
  int max_outputs = 1;  ///< -1: any number
  TypeFn type = nullptr;
  TypesFn types = nullptr;          ///< exactly one of type and types is set
  ReferenceFn reference = nullptr;  ///< null only for control flow, which runtime/ runs
  /// Bit i: output 0 may be written over input i where both have the same type; reference and kernels read each element
  /// of that input before they write the output's.
  uint32_t in_place = 0;
  Traits traits = 0;
  UnaryKind unary{};
  Work work = Work::kPlain;
  MultiplyAddsFn multiply_adds = nullptr;  ///< of products, attention and recurrent operators
  /// What an application's own operator needs besides its node (see <pinnace/custom_op.h>); null for built-in ones.
  /// With a context, attributes are not checked against the schema.
  const void* context = nullptr;

  /// True if it has one of the traits.
  bool has(Traits any) const { return (traits & any) != 0; }
};

inline std::string_view NodeView::input_name(int i) const {
  assert(i >= 0 && static_cast<size_t>(i) < op_.inputs.size());
  return op_.inputs.begin()[i].name;
}

/// PINNACE_OP(relu){.name = "relu", …}; defines relu_op. The declaration before it gives the constant external linkage,
/// by which op.cc finds what ops.inc lists.
#define PINNACE_OP(op)        \
  extern const OpDef op##_op; \
  constinit const OpDef op##_op

/// The operator of that name, or null. The list is ops.inc.
const OpDef* find_op(std::string_view name);
/// All operators in alphabetical order.
std::span<const OpDef* const> all_ops();

/// Checks a node against the schema of its operator: arity, left-out inputs, element types and letters, attribute names
/// and kinds, number of outputs. `types` as for NodeView.
Status check_node(const Node& node, const OpDef& op, std::span<const TensorType* const> types);

/// check_node, then the shape rule. Results have as many entries as the node has outputs.
Result<std::vector<TensorType>> infer_node_types(const NodeView& node);

// -------------------------------------------------------------------------------------------- parts of shape rules

/// The shape that `a` and `b` broadcast to (numpy's rule); unknown and symbolic sizes are kept where they decide.
Result<Shape> broadcast_shapes(const NodeView& node, const Shape& a, const Shape& b);
/// Inputs [first, last) that are there and output 0 are all quantised per tensor, or none of them is quantised.
Status check_quantized(const NodeView& node, int first, int last);
/// For operators that have no meaning on quantised types: no input and no output is quantised.
Status refuse_quantized(const NodeView& node);
/// Shape rule of elementwise operators with one input: the input's type, with the declared quantisation;
/// check_quantized.
Result<TensorType> same_type(const NodeView& node);
/// Shape rule of elementwise operators: inputs [first, last) broadcast; element type of input `first`; check_quantized.
Result<TensorType> broadcast_type(const NodeView& node, int first, int last);
/// As broadcast_type over inputs 0 and 1.
Result<TensorType> binary_type(const NodeView& node);
/// As broadcast_type over all inputs of a variadic operator, of which there must be one or more.
Result<TensorType> variadic_type(const NodeView& node);
/// Inputs 0 and 1 broadcast, element type bool. Both are quantised per tensor or neither is.
Result<TensorType> compare_type(const NodeView& node);

}  // namespace pinnace
