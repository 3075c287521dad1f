// What a mapping function is given: one operation of an NNAPI model, and the means to put nodes of ours in its place.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nnapi/operations.h"
#include "nnapi/to_graph.h"
#include "ops/type_inference.h"

namespace pinnace::nnapi {

using Attrs = std::vector<std::pair<std::string, Attr>>;
using QuantizationPtr = std::shared_ptr<const Quantization>;

/// A graph under construction for one model, the main one or a referenced one.
class GraphBuilder {
 public:
  GraphBuilder(const Model& model, std::string prefix) : model(&model), prefix(std::move(prefix)) {}
  /// For a model that an operation of `outer` refers to, with a graph of its own. Nothing in `values` yet.
  GraphBuilder(const Model& model, std::string prefix, GraphBuilder& outer)
      : model(&model),
        prefix(std::move(prefix)),
        outer(&outer),
        nesting(outer.nesting + 1),
        values(model.operands.size(), kNoValue) {}

  const Model* model;
  std::string prefix;  ///< of names of nodes and values
  GraphBuilder* outer = nullptr;
  int nesting = 0;                      ///< of references to models
  std::map<ValueId, ValueId> captured;  ///< of inputs that are the same value of `outer` for ever: that one
  Graph graph;
  TypeInference type_inference;
  std::vector<ValueId> values;  ///< per operand; kNoValue: omitted, or not made yet
  std::vector<uint32_t> graph_inputs;
  std::vector<uint32_t> needed;
  /// For values that are channels last, the same channels first, where there is one. Operators that can take either
  /// order take that, so that no transposes stand between convolutions; the other value then has no readers.
  std::map<ValueId, ValueId> channels_first;
  ValueId iteration = kNoValue;  ///< of a loop's body: the number of the iteration, i64
  bool may_add_entropy = false;

  /// Inputs and constants, then all operations, then outputs.
  Status run(std::span<const InputSpec> inputs);
  /// The operations alone: inputs and constants are in `values`.
  Status run_operations();
  Status add_inputs(std::span<const InputSpec> inputs);
  /// Constants of the model as values of the graph.
  Status add_constants();
  /// A value of `outer` here: a constant where its contents are known, else an input.
  ValueId capture(std::string name, ValueId from);
  /// The values of `outer` that are inputs here, in the order of those inputs.
  std::vector<ValueId> captures() const;
  /// Puts the operations of a referenced model among this one's, its inputs being `inputs`. Gives its outputs.
  Result<std::vector<ValueId>> inlined(const Model& other, const std::string& name, std::span<const ValueId> inputs);
  /// A value whose contents must be known is not: its inputs are added to `needed`. Always a failure.
  Status need(ValueId id);

  const TensorType& type(ValueId id) const { return type_inference.types[static_cast<size_t>(id)]; }
  const ConstantPtr& data(ValueId id) const { return type_inference.data[static_cast<size_t>(id)]; }
  ValueId add_constant(std::string name, TensorType type, ConstantPtr data);
  ValueId add_input(std::string name, TensorType type);
  /// The kEntropyInput, added when it is first asked for, in a loop's body other numbers in each iteration; kNoValue
  /// where there must be none.
  Result<ValueId> entropy();
  /// How many seeds were made of it so far: all of them are to differ.
  int32_t next_draw() { return outermost().draws_++; }
  /// Adds a node and infers its outputs; `declared` has the quantisation of output 0.
  Result<std::vector<ValueId>> emit(std::string_view op, std::string name, std::vector<ValueId> inputs, Attrs attrs,
                                    int outputs, const QuantizationPtr& declared);

 private:
  void grow();
  ValueId entropy_ = kNoValue;
  int32_t draws_ = 0;  ///< counted in the outermost
  /// Nothing of a model that refers to others too often is mapped.
  Status count_reference();
  /// Adds input `id`, if it is one, to what the outermost model needs; false if that changes nothing.
  bool need_input(ValueId id);
  GraphBuilder& outermost();
  size_t referenced_operations_ = 0, referenced_operands_ = 0;  ///< so far; counted in the outermost
};

/// The quantisation of an operand, null if it has none.
QuantizationPtr quantization_of(const Operand& operand);
QuantizationPtr per_tensor(float scale, int32_t zero_point);

/// One operation while it is mapped.
class Call {
 public:
  Call(GraphBuilder& builder, const Operation& operation, std::string name)
      : builder_(builder), operation_(operation), name_(std::move(name)) {}

  Op op() const { return static_cast<Op>(operation_.code); }
  const std::string& name() const { return name_; }
  const Operation& operation() const { return operation_; }
  GraphBuilder& builder() { return builder_; }
  /// kInvalidArgument with the operation's name.
  template <class... Parts>
  [[gnu::always_inline]] Status error(const Parts&... parts) const {
    return invalid(name_, ": ", parts...);
  }

  // Operands. Counts and types were checked when the operation was added.
  size_t inputs() const { return operation_.inputs.size(); }
  size_t outputs() const { return operation_.outputs.size(); }
  const Operand& operand(size_t i) const { return builder_.model->operands[operation_.inputs[i]]; }
  const Operand& result(size_t i) const { return builder_.model->operands[operation_.outputs[i]]; }
  /// True if input i is there and has a value.
  bool has(size_t i) const { return i < inputs() && builder_.values[operation_.inputs[i]] != kNoValue; }
  /// kInvalidArgument if it has no value.
  Result<ValueId> in(size_t i) const;
  const TensorType& type(ValueId id) const { return builder_.type(id); }
  /// As type(), with every dimension known.
  Result<TensorType> concrete(ValueId id) const;
  /// Size of dimension d (negative: from the end), which must be known.
  Result<int64_t> size(ValueId id, int d) const;
  int rank(ValueId id) const { return type(id).rank(); }
  bool quantized(ValueId id) const { return type(id).quantized(); }

  // Contents of inputs that are attributes with us.
  Result<std::vector<int64_t>> ints(size_t i);
  Result<int64_t> integer(size_t i);
  /// The same, or `fallback` where the input was left out at the end.
  Result<int64_t> integer(size_t i, int64_t fallback);
  Result<bool> flag(size_t i, bool fallback = false);
  Result<double> real(size_t i);
  /// An axis in [-rank, rank), made non-negative.
  Result<int64_t> axis(size_t i, int rank);
  /// The contents of a value of i32, i64 or bool.
  Result<std::vector<int64_t>> ints_of(ValueId id);

  // Constants.
  Result<ValueId> constant_ints(std::span<const int64_t> values, DType dtype = DType::kI64);
  Result<ValueId> constant_ints(std::initializer_list<int64_t> values) {
    return constant_ints(std::span<const int64_t>(values.begin(), values.size()));
  }
  /// Of a float type, i32, i64 or bool; rank 0.
  Result<ValueId> constant_scalar(DType dtype, double value);
  Result<ValueId> constant_floats(std::span<const float> values);

  // Nodes.
  /// With one output; `quantization` is what the output is declared to have.
  Result<ValueId> emit(std::string_view op, std::vector<ValueId> inputs, Attrs attrs = {},
                       const QuantizationPtr& quantization = nullptr);
  Result<std::vector<ValueId>> emit_many(std::string_view op, std::vector<ValueId> inputs, Attrs attrs, int outputs,
                                         const QuantizationPtr& quantization = nullptr);
  Result<ValueId> transpose(ValueId id, std::vector<int64_t> perm);
  Result<ValueId> reshape(ValueId id, std::vector<int64_t> dims);
  Result<ValueId> cast(ValueId id, DType dtype);
  /// The same stored integers with another quantisation, or none: no arithmetic.
  Result<ValueId> reinterpret(ValueId id, const QuantizationPtr& quantization);
  /// Real values kept as well as the quantisation (and f32, where null) allows.
  Result<ValueId> requantize(ValueId id, DType dtype, const QuantizationPtr& quantization);
  Result<ValueId> dequantize(ValueId id, DType to = DType::kF32);
  /// Channels-last to channels-first and back; nothing where `nchw` is true already.
  Result<ValueId> to_nchw(ValueId id, bool nchw = false);
  Result<ValueId> from_nchw(ValueId id, bool nchw = false);
  /// The value of channels_first, or kNoValue.
  ValueId channels_first(ValueId id) const;
  /// As emit, for operators that work element by element, with broadcasting: channels first where an input is there.
  Result<ValueId> pointwise(std::string_view op, std::vector<ValueId> inputs, Attrs attrs = {},
                            const QuantizationPtr& quantization = nullptr);
  /// A fused activation as a node of its own; codes 0 to 3.
  Result<ValueId> activate(ValueId id, int64_t code);
  /// The same as attributes of an operator that has them.
  Result<Attrs> activation(int64_t code) const;

  /// Output i is `id`. kInvalidArgument where its type or shape contradicts the operand's.
  Status finish(size_t i, ValueId id);
  /// Quantisation of output i, null if it has none.
  QuantizationPtr declared(size_t i = 0) const { return quantization_of(result(i)); }

 private:
  Result<ConstantPtr> contents(ValueId id);

  GraphBuilder& builder_;
  const Operation& operation_;
  std::string name_;
};

using MapFn = Status (*)(Call& call);
/// The function for an operation, or null.
MapFn find_mapping(int32_t code);

// One per function of mappings.inc.
#define MAP(op, function) Status map_##function(Call& call);
#include "nnapi/mappings.inc"
#undef MAP

}  // namespace pinnace::nnapi
