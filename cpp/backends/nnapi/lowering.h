// From a run of nodes to an NNAPI model of one feature level, as plain data; no device is needed. The same code answers
// supports(), with one node and without making weights, and serves compile().
//
// A value is an operand, or two: in the graph's order of dimensions and, of rank 4, channels last. Whoever needs the
// other order asks for it. Values that enter the segment are model inputs in the order that is asked for, so the change
// is made on the way in; values made inside are transposed, at feature level 1, which has no TRANSPOSE, between two
// models.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/nnapi/rules.h"
#include "nnapi/operations.h"
#include "ops/activation.h"

namespace pinnace::nnapi_client {

using nnapi::Op;
using nnapi::OperandCode;
using OperandId = uint32_t;
inline constexpr OperandId kNoOperand = UINT32_MAX;

enum class Layout : uint8_t { kPlain, kChannelsLast };

/// What happens to elements between the graph's bytes and NNAPI's.
enum class Elements : uint8_t {
  kSame,
  kFlipSign,  ///< i8 stands as unsigned plus 128
  kNarrow,    ///< i64 stands as i32
  kWiden,     ///< u16 stands as i32
};

/// What a reader of an i64 value, which stands as i32, needs of it.
enum class Int64 : uint8_t {
  kRefused,    ///< it cannot read one
  kPositions,  ///< numbers outside of i32 may stand as its ends: they index nothing either way
  kExact,      ///< every number: one outside of i32 must not enter
};

/// How a tensor of the graph stands in NNAPI.
struct OperandSpec {
  OperandCode type = OperandCode::kTensorFloat32;
  std::vector<uint32_t> dims;
  float scale = 0;
  int32_t zero_point = 0;
  Elements elements = Elements::kSame;
};

/// A value of the graph as lowering sees it.
struct LoweredValue {
  const TensorType* type = nullptr;
  const void* data = nullptr;  ///< contents of a constant; when lowering only answers, perhaps null for one that is
  bool constant = false;
  bool inside = false;                               ///< made by a node that was lowered, or an input of a body
  OperandId operands[2] = {kNoOperand, kNoOperand};  ///< by Layout
  int64_t least = INT32_MIN, most = INT32_MAX;       ///< of i64: what it can be
};

/// A constant that is made when the model is built: `bytes` bytes written by `fill`, shared under `key`.
struct Weight {
  OperandId operand;
  const nnapi::Model* body;  ///< the referenced model that has the operand; null: the segment's own
  size_t bytes;
  std::string key;
  std::function<void(std::byte*)> fill;
  bool stores;  ///< a file built for the target has it
};

/// A value that enters or leaves, and how.
struct Boundary {
  ValueId value;
  OperandId operand;
  Layout layout;
  Elements elements;
  bool exact = false;  ///< a narrowed number that does not fit is an error
};

/// A transposition that NNAPI cannot make, between two models.
struct HostMove {
  OperandId from, to;
  Layout from_layout;  ///< to the other one
};

/// The code of a HostMove in Model::operations; its index there counts them.
inline constexpr int32_t kHostMoveCode = -1;

class Lowering {
 public:
  /// `values`: one per ValueId that nodes mention. dry: weights are not made and constants need no data.
  Lowering(int level, bool dry, std::vector<LoweredValue> values)
      : feature_level_(level), dry_(dry), values_(std::move(values)) {}

  int feature_level() const { return feature_level_; }
  bool dry() const { return dry_; }
  nnapi::Model& model() { return model_; }
  LoweredValue& value(ValueId id) { return values_[static_cast<size_t>(id)]; }

  /// Names the weights of what is lowered from here on: unique for the node.
  void set_key(std::string key) { key_ = std::move(key); }
  const std::string& key() const { return key_; }
  /// What is called before the contents of the node's constants are read while it is lowered, rather than by fills.
  void set_before_reading(std::function<void()> check) { before_reading_ = std::move(check); }
  /// What the node that is lowered needs of i64 values where it does not say so itself.
  void set_int64(Int64 use) { int64_ = use; }

  /// How `type` stands in NNAPI at this level, dims in the graph's order, ranks above 4 as one dimension; or the
  /// verdict. narrow: i64 becomes i32.
  bool specify(const TensorType& type, OperandSpec& to, Verdict& verdict, bool narrow = false) const;

  OperandId add_operand(const OperandSpec& spec, nnapi::Lifetime lifetime);
  /// A small constant, copied.
  OperandId add_constant(const OperandSpec& spec, const void* bytes, size_t size);
  /// A constant made by `fill` when the model is built. `role` and spec, with the node and the level, say all that its
  /// bytes depend on. stores: it is laid out from the graph's weights, numbers to be computed with, never places: it
  /// may be kept in a file, and a forged one must do no harm.
  OperandId add_weight(const OperandSpec& spec, std::string_view role, std::function<void(std::byte*)> fill,
                       bool stores = false);
  /// What fills a weight that was just added; the operand is removed, and must be the last.
  std::function<void(std::byte*)> take_constant(OperandId last);
  OperandId add_scalar(int32_t value);
  OperandId add_scalar(float value, OperandCode type);
  OperandId add_scalar(bool value);
  /// A referenced model, with the weights of the lowering that made it.
  OperandId add_body(Lowering&& body);
  /// Lives as long as this: what constants lie in.
  void keep(std::shared_ptr<const void> owner) { kept_.push_back(std::move(owner)); }

  /// Appends an operation after checking it against NNAPI's table at this level.
  Status add_operation(Op op, std::vector<OperandId> inputs, std::vector<OperandId> outputs, Verdict& verdict);

  /// The operand of a value in a layout, made, converted or let in as needed.
  Result<OperandId> operand(ValueId id, Layout layout, Verdict& verdict, Int64 use = Int64::kRefused);
  /// The operand that a node is to write.
  Result<OperandId> output(ValueId id, Layout layout, Verdict& verdict, Int64 use = Int64::kRefused);
  /// The operand of an i32 value with the scale that a product wants of its bias, which a value of the graph has not:
  /// another entry, or from feature level 3 on a CAST of what stands there.
  Result<OperandId> scaled_int32(ValueId id, float scale, Verdict& verdict);
  /// A recurrent cell's state of plain i16 with the scale that its operation wants: other operators take no i16.
  Result<OperandId> cell_input(ValueId id, float scale, Verdict& verdict);
  Result<OperandId> cell_output(ValueId id, float scale, Verdict& verdict);
  /// The input of a body that stands for `outer`, an operand of the model around it.
  void add_body_input(ValueId id, const nnapi::Operand& outer);
  /// True if the value exists channels last and not in the graph's order.
  bool stands_channels_last(ValueId id) const;

  /// Marks the values that leave; afterwards the model is whole.
  Status finish(std::span<const ValueId> outputs, Verdict& verdict);
  /// The same for a body: `outputs` are operands of its model, made by its operations, each once.
  void finish_body(std::span<const OperandId> outputs);

  const std::vector<Weight>& weights() const { return weights_; }
  const std::vector<Boundary>& entries() const { return entries_; }
  const std::vector<Boundary>& exits() const { return exits_; }
  const std::vector<HostMove>& moves() const { return moves_; }

 private:
  OperandId constant(ValueId id, Layout layout, OperandSpec spec);
  Result<OperandId> change_layout(ValueId id, Layout layout, Verdict& verdict);

  int feature_level_;
  bool dry_;
  nnapi::Model model_;
  std::vector<LoweredValue> values_;
  std::vector<Weight> weights_;
  std::vector<Boundary> entries_, exits_;
  std::vector<HostMove> moves_;
  std::vector<std::shared_ptr<const void>> kept_;
  std::string key_;
  std::function<void()> before_reading_;
  Int64 int64_ = Int64::kRefused;
};

/// dims of rank 4 as [N, H, W, C].
std::vector<uint32_t> channels_last(const std::vector<uint32_t>& dims);
/// Copies elements of `size` bytes from [N, C, H, W] to [N, H, W, C], or back.
void move_to_channels_last(const std::vector<uint32_t>& nchw, size_t size, const std::byte* from, std::byte* to);
void move_from_channels_last(const std::vector<uint32_t>& nchw, size_t size, const std::byte* from, std::byte* to);

/// One node while it is lowered: what functions of lowerings.inc are given. Each returns a failure only through
/// refuse(), or through a call of this class that failed.
class NodeLowering {
 public:
  NodeLowering(Lowering& lowering, const NodeView& view, std::span<const TensorType* const> outputs)
      : lowering_(lowering), view_(view), outputs_(outputs) {}

  const NodeView& view() const { return view_; }
  int feature_level() const { return lowering_.feature_level(); }
  Lowering& lowering() { return lowering_; }
  bool has(int i) const { return view_.has_input(i); }
  const TensorType& in_type(int i) const { return view_.input(i); }
  const TensorType& out_type(int i = 0) const { return *outputs_[static_cast<size_t>(i)]; }
  ValueId in_id(int i) const { return view_.node().inputs[static_cast<size_t>(i)]; }
  ValueId out_id(int i = 0) const { return view_.node().outputs[static_cast<size_t>(i)]; }
  bool constant(int i) const { return lowering_.value(in_id(i)).constant; }
  const void* data(int i) const { return lowering_.value(in_id(i)).data; }

  /// kUnsupported, and the verdict.
  Status refuse(Rule rule, std::string value = {});
  /// Says in the verdict what the node becomes.
  void rewritten(std::string_view text);
  Verdict& verdict() { return verdict_; }

  Result<OperandId> in(int i, Layout layout = Layout::kPlain) { return lowering_.operand(in_id(i), layout, verdict_); }
  Result<OperandId> out(int i = 0, Layout layout = Layout::kPlain) {
    return lowering_.output(out_id(i), layout, verdict_);
  }
  /// The same for integers that are positions: i64 stands as i32.
  Result<OperandId> in_positions(int i) {
    return lowering_.operand(in_id(i), Layout::kPlain, verdict_, Int64::kPositions);
  }
  Result<OperandId> out_positions(int i = 0) {
    return lowering_.output(out_id(i), Layout::kPlain, verdict_, Int64::kExact);
  }
  OperandId scalar(int32_t v) { return lowering_.add_scalar(v); }
  OperandId flag(bool v) { return lowering_.add_scalar(v); }
  /// A float scalar of the type that goes with tensors of `like`: half for f16.
  OperandId real(double v, const TensorType& like);
  OperandId ints(std::span<const int32_t> values, std::vector<uint32_t> dims);
  OperandId ints(std::span<const int32_t> values) { return ints(values, {static_cast<uint32_t>(values.size())}); }
  /// A tensor constant of one element, [1], of an operand's float type.
  OperandId number(double v, OperandId like);
  /// A value between operations, of the type of `like` unless dims are given.
  OperandId temp(OperandId like);
  OperandId temp(OperandId like, std::vector<uint32_t> dims);
  OperandId temp(const OperandSpec& spec) { return lowering_.add_operand(spec, nnapi::Lifetime::kTemporary); }
  const nnapi::Operand& operand(OperandId id) { return lowering_.model().operands[id]; }

  Status add(Op op, std::vector<OperandId> inputs, std::vector<OperandId> outputs) {
    return lowering_.add_operation(op, std::move(inputs), std::move(outputs), verdict_);
  }
  Status add(Op op, std::vector<OperandId> inputs, OperandId output) {
    return add(op, std::move(inputs), std::vector<OperandId>{output});
  }
  /// `op` with inputs and then a fused activation, into output 0. Inputs after the activation follow in `after`. An
  /// activation that cannot be fused becomes operations of its own.
  Status add_activated(Op op, std::vector<OperandId> inputs, const Activation& activation, OperandId output,
                       std::vector<OperandId> after = {});

  /// The layout for an operator that works on elements: channels last if an input stands so and all others can.
  Layout elementwise_layout() const;
  /// The type of input i as an operand.
  Result<OperandSpec> spec(const TensorType& type);

 private:
  Lowering& lowering_;
  const NodeView& view_;
  std::span<const TensorType* const> outputs_;
  Verdict verdict_;
};

/// Lowers one node, after rules that hold for all operators. `verdict` receives what it becomes, or the rule that
/// refuses it. `outputs` are the types of the node's outputs.
Status lower_node(Lowering& lowering, const NodeView& view, std::span<const TensorType* const> outputs,
                  Verdict& verdict);

using LowerFn = Status (*)(NodeLowering& n);
/// Null if no lowering is listed.
LowerFn find_lowering(std::string_view op);

/// Before a node with i64 inputs or outputs is lowered: whether its arithmetic stays within i32, by what its inputs can
/// be. kRefused where the operator has no form for i64 but those that ask for positions themselves.
Result<Int64> plan_int64(NodeLowering& n);

/// y = f(x), as operations.
Status add_unary(NodeLowering& n, const Unary& f, OperandId x, OperandId y);

}  // namespace pinnace::nnapi_client
