// Call: one node of the source as a mapping function sees it; and the tables of these functions, one per family of
// operators. A mapping function reads its arguments by the name in the operator's schema, emits nodes, and gives
// outputs. Failures stick: after the first one every call does nothing, so functions need no error handling of their
// own.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/torch/builder.h"

namespace pinnace::torch_import {

/// A tensor or a number, where an operator takes either.
struct Operand {
  ValueId tensor = kNoValue;
  Scalar scalar;
  bool is_tensor() const { return tensor != kNoValue; }
};

using AttrList = std::initializer_list<std::pair<const char*, Attr>>;

class Call {
 public:
  Call(Builder& builder, Scope& scope, const NodeDef& node, std::string_view overload, std::string_view parameter)
      : builder_(builder),
        scope_(scope),
        node_(node),
        overload_(overload),
        parameter_(parameter),
        first_value_(builder.graph.values.size()),
        used_(node.inputs.size(), false) {}

  const NodeDef& node() const { return node_; }
  std::string_view overload() const { return overload_; }
  /// The text beside the function in its table.
  std::string_view parameter() const { return parameter_; }
  Builder& builder() { return builder_; }
  Scope& scope() { return scope_; }

  // ------------------------------------------------------------------------------------------------ failures
  bool ok() const { return !failed_; }
  /// Refuses the node: one phrase for the rule, the value that breaks it.
  void fail(std::string rule, std::string value = {});
  void fail(const Status& status) {
    if (!status.ok()) fail(status.message());
  }
  const std::string& rule() const { return rule_; }
  const std::string& value() const { return value_; }
  /// Fails unless every given argument was asked for.
  void check_all_used();

  // ----------------------------------------------------------------------------------------------- arguments
  /// There, and not None.
  bool given(std::string_view name);
  const Argument* argument(std::string_view name);
  /// The i-th argument whatever its name (higher-order operators and Python's own have none); null if there is none.
  const Argument* positional(size_t i);
  ValueId tensor(std::string_view name);
  ValueId optional_tensor(std::string_view name);
  std::vector<ValueId> tensors(std::string_view name);  ///< kNoValue where None
  Operand operand(std::string_view name);
  Scalar scalar(std::string_view name);
  Scalar scalar(std::string_view name, Scalar otherwise);
  int64_t integer(std::string_view name);  ///< must be known
  int64_t integer(std::string_view name, int64_t otherwise);
  double number(std::string_view name, double otherwise);
  bool boolean(std::string_view name, bool otherwise);
  std::string string(std::string_view name, std::string otherwise = {});
  std::vector<int64_t> ints(std::string_view name);
  /// `count` numbers; one stands for all, none for `otherwise`.
  std::vector<int64_t> ints(std::string_view name, size_t count, int64_t otherwise);
  std::vector<double> floats(std::string_view name);
  std::vector<Scalar> sizes(std::string_view name);
  std::optional<DType> dtype(std::string_view name);
  /// An axis of a tensor of that rank (rank 0 counts as 1), made non-negative.
  int64_t axis(std::string_view name, int rank);
  int64_t axis(std::string_view name, int rank, int64_t otherwise);
  /// Axes made non-negative and sorted; left out, None or empty: all if `empty_is_all`.
  std::vector<int64_t> axes(std::string_view name, int rank, bool empty_is_all = true);
  /// Arguments without influence on the result.
  void ignore(std::initializer_list<std::string_view> names);
  /// Fails with `rule` if the argument is given as true.
  void refuse_true(std::string_view name, std::string rule);

  // -------------------------------------------------------------------------------------------------- values
  // A complex tensor is a pair: a real tensor with a last dimension of 2, for real and imaginary part. Ranks, axes and
  // sizes here are those that PyTorch speaks of, without that dimension; only `type` shows it. Helpers below that move
  // elements keep it; `add` knows nothing of it.
  bool is_pair(ValueId id) const;
  void mark_pair(ValueId id);
  /// `made`, a pair if `model` is one.
  ValueId paired_like(ValueId model, ValueId made);
  const TensorType& type(ValueId id) const;
  DType dtype_of(ValueId id) const { return type(id).dtype; }
  int rank(ValueId id) const { return type(id).rank() - (is_pair(id) ? 1 : 0); }
  /// Unknown where there is no such dimension; negative axes count from the end.
  Dim dim(ValueId id, int64_t axis) const;
  /// What the archive says of output i; null if nothing.
  const TensorMeta* meta(size_t output = 0) const;
  const TensorMeta* meta_of(std::string_view argument) const;
  /// The element type that output i must have; of a complex one that of its parts.
  DType out_dtype(size_t output = 0);
  /// False if nothing in this graph uses output i.
  bool reads(size_t output) const;
  int out_rank(size_t output = 0) const { return meta(output) ? static_cast<int>(meta(output)->sizes.size()) : 0; }
  std::optional<std::vector<int64_t>> known_ints(ValueId id) const;
  /// Contents of a constant; null of what is computed or given.
  ConstantPtr known(ValueId id) const;

  // -------------------------------------------------------------------------------------------------- emission
  ValueId add(std::string_view op, std::vector<ValueId> inputs, AttrList attrs = {});
  std::vector<ValueId> add_many(std::string_view op, std::vector<ValueId> inputs, int outputs, AttrList attrs = {});
  std::vector<ValueId> add_node(std::string_view op, std::vector<ValueId> inputs, int outputs,
                                std::vector<std::pair<std::string, Attr>> attrs);
  /// A constant of one element; `shape` is [] or [1].
  ValueId constant(double value, DType dtype, const Shape& shape = {});
  ValueId constant_int(int64_t value, DType dtype = DType::kI64, const Shape& shape = {});
  ValueId constant_ints(const std::vector<int64_t>& values);
  ValueId constant_floats(const std::vector<float>& values, const Shape& shape);
  /// A constant of integers of 8 bits.
  ValueId constant_bytes(const std::vector<uint8_t>& values, DType dtype, const Shape& shape);
  ValueId cast(ValueId id, DType dtype);
  /// An operand as a tensor of that type; a number becomes a tensor without dimensions.
  ValueId as_tensor(const Operand& operand, DType dtype);
  /// i64[1] of a size; i64[n] of several.
  ValueId size_value(const Scalar& size);
  ValueId size_values(const std::vector<Scalar>& sizes);
  /// The size of one dimension.
  Scalar size_of(ValueId id, int64_t axis);
  std::vector<Scalar> sizes_of(ValueId id);
  Scalar add_sizes(const Scalar& a, const Scalar& b);
  Scalar multiply_sizes(const Scalar& a, const Scalar& b);
  ValueId reshape(ValueId id, const std::vector<Scalar>& sizes);
  ValueId reshape(ValueId id, const std::vector<int64_t>& sizes);
  ValueId unsqueeze(ValueId id, const std::vector<int64_t>& axes);
  ValueId squeeze(ValueId id, const std::vector<int64_t>& axes);
  ValueId transpose(ValueId id, const std::vector<int64_t>& order);
  ValueId swap(ValueId id, int64_t a, int64_t b);
  ValueId slice(ValueId id, int64_t axis, const Scalar& start, const Scalar& end, int64_t step = 1);
  /// All parts pairs, or none.
  ValueId concat(std::vector<ValueId> parts, int64_t axis);
  /// The elements of an axis at these places: its dimension becomes those of `places`.
  ValueId gather(ValueId id, ValueId places, int64_t axis);
  std::vector<ValueId> split(ValueId id, const std::vector<int64_t>& sizes, int64_t axis);
  ValueId expand(ValueId id, const std::vector<Scalar>& sizes);   ///< -1 keeps a size
  ValueId full(const std::vector<Scalar>& sizes, ValueId value);  ///< value without dimensions or [1]
  /// torch's result type of these operands.
  DType promote(std::span<const Operand> operands);

  // --------------------------------------------------------------------------------------------------- outputs
  void output(ValueId id) { outputs({id}); }
  void outputs(std::vector<ValueId> ids);
  void output_scalar(Scalar scalar);
  /// The node has no result that anyone may read (assertions).
  void no_output() { done_ = true; }
  /// Outputs share memory with the first tensor argument, or each with its own of a list: see shared_tensor.
  void shares(Sharing sharing) { sharing_ = sharing; }
  /// Outputs are bound to handles themselves (inlined graphs, write-backs).
  void bound() { done_ = bound_ = true; }

  // What was given, for Builder.
  const std::vector<ValueId>& given_outputs() const { return outputs_; }
  const std::vector<Scalar>& given_scalars() const { return scalars_; }
  bool done() const { return done_; }
  bool binds_itself() const { return bound_; }
  Sharing sharing() const { return sharing_; }
  size_t first_value() const { return first_value_; }

  int handle_of(const std::string& name);
  Scalar scalar_of(const Argument& argument);

 private:
  ValueId read_tensor(const Argument& argument);
  template <class T>
  T failed(std::string rule, std::string value, T result) {
    fail(std::move(rule), std::move(value));
    return result;
  }

  Builder& builder_;
  Scope& scope_;
  const NodeDef& node_;
  std::string_view overload_, parameter_;
  size_t first_value_;
  std::vector<bool> used_;
  bool failed_ = false, done_ = false, bound_ = false;
  std::string rule_, value_;
  std::vector<ValueId> outputs_;
  std::vector<Scalar> scalars_;
  Sharing sharing_ = Sharing::kNone;
  std::vector<ValueId> pairs_;
};

/// What a formula of several steps on that type is computed in: PyTorch takes f32 for f16 and bf16 and rounds once.
inline DType compute_type(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : dtype;
}

using MapFn = void (*)(Call& call);

/// `target` is without "torch.ops." and overload: "aten.add", "_operator.mul". `parameter` lets one function serve
/// several.
struct Mapping {
  std::string_view target;
  MapFn map;
  std::string_view parameter;
};

/// True if the rows can be searched.
constexpr bool sorted(std::span<const Mapping> rows) {
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i - 1].target >= rows[i].target) return false;
  }
  return true;
}

/// Each sorted by target.
std::span<const Mapping> elementwise_mappings();
std::span<const Mapping> activation_mappings();
std::span<const Mapping> creation_mappings();
std::span<const Mapping> movement_mappings();
std::span<const Mapping> view_mappings();
std::span<const Mapping> part_view_mappings();
std::span<const Mapping> view_write_mappings();
std::span<const Mapping> indexing_mappings();
std::span<const Mapping> reduce_mappings();
std::span<const Mapping> matmul_mappings();
std::span<const Mapping> convolution_mappings();
std::span<const Mapping> attention_mappings();
std::span<const Mapping> normalization_mappings();
std::span<const Mapping> pooling_mappings();
std::span<const Mapping> recurrent_mappings();
std::span<const Mapping> symbolic_mappings();
std::span<const Mapping> quantized_mappings();
std::span<const Mapping> torchao_mappings();
std::span<const Mapping> control_flow_mappings();
std::span<const Mapping> vision_mappings();
std::span<const Mapping> special_mappings();
std::span<const Mapping> combine_mappings();
std::span<const Mapping> ordering_mappings();
std::span<const Mapping> scatter_mappings();
std::span<const Mapping> image_mappings();
std::span<const Mapping> loss_mappings();
std::span<const Mapping> linalg_mappings();
std::span<const Mapping> spectral_mappings();

/// For nodes with complex tensors: arithmetic on pairs; transforms.
std::span<const Mapping> complex_mappings();
std::span<const Mapping> complex_spectral_mappings();
/// True for operators of the other tables that take pairs too: those that only move elements, by helpers of Call that
/// keep pairs together, and sums of products.
bool takes_pairs(std::string_view target);

/// The function for a target without overload, or null.
const Mapping* find_mapping(std::string_view target);
/// The same for a node with complex tensors.
const Mapping* find_complex_mapping(std::string_view target);

/// Windows of `size` elements of an axis whose own size is dynamic, a new one every `step` elements: dimensions windows
/// and size instead of the axis. Of slices and reshapes alone, whose sizes follow the axis'.
ValueId windows_of_dynamic_axis(Call& c, ValueId x, int64_t axis, int64_t size, int64_t step);

/// The angle of (x, y), one element type; as atan2 has it.
ValueId angle_of(Call& c, ValueId y, ValueId x);
/// The pair of these two, broadcast; the pair of a real tensor and 0; one part, 0 or 1, of a pair.
ValueId pair_of(Call& c, ValueId real, ValueId imaginary);
ValueId pair_of(Call& c, ValueId real);
ValueId part_of(Call& c, ValueId pair, int which);
/// mat_mul, of which either side may be a pair.
ValueId matrix_product(Call& c, ValueId a, ValueId b);
/// `id` as a pair if `model` is one.
ValueId paired(Call& c, ValueId model, ValueId id);
/// The conjugate of a pair.
ValueId conjugate(Call& c, ValueId pair);

/// An operator of the application: its tensors in order, everything else as attributes by name.
void map_custom_operator(Call& call, const std::string& op);

/// What a write into view `node` of a value does to the value: `base` with the view's elements replaced by `written`.
/// Fails for views that cannot be undone.
void write_through_view(Call& call, ValueId base, ValueId written, size_t output);

}  // namespace pinnace::torch_import
