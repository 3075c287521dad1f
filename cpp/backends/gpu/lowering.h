// From nodes to dispatches: what tensors there are on the device, in which layout, and the steps that make them.
#pragma once

#include <cassert>
#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "backends/gpu/context.h"
#include "backends/gpu/push_constants.h"
#include "backends/gpu/rules.h"
#include "ops/activation.h"

namespace pinnace::gpu {

using TensorId = int32_t;
inline constexpr TensorId kNoTensor = -1;

/// Bytes of one run, or of all runs.
struct DeviceTensor {
  enum class Place : uint8_t {
    kActivation,   ///< of one run, planned
    kInput,        ///< what the host wrote: input `index` of the segment, in 32 bits per element
    kOutput,       ///< what the host will read: output `index`, likewise
    kWeight,       ///< weight `index`, the same in all runs
    kErrorRecord,  ///< three int32 in which step `index` of those that look at their operands says what is wrong
    kState,        ///< state `index` of those that stay on the device, as kInput; never made by lowering
    kNextState,    ///< what it becomes, as kOutput; never made by lowering
  } place = Place::kActivation;
  size_t index = 0;
  size_t bytes = 0;  ///< multiple of 16, above 0
};

/// What a kernel finds wrong with its operands: the first number of a device error record
/// (shaders/error_record.glsl).
enum class DeviceError : int32_t {
  kNone = 0,
  kIndexOutside = 1,  ///< then the index and the size of the dimension
  kBeyond32Bits = 2,
  kDivisorZero = 3,
  kBoxOutside = 4,
  kUndecided = 5,
  kLengthOutside = 6,  ///< then the length and the most that it may be
};

/// How the device holds integers of a type: what shaders call HELD.
int32_t held_as(DType dtype);

/// Bytes [offset, offset + bytes) of a tensor.
struct Extent {
  size_t offset = 0, bytes = 0;
};

/// One dispatch.
struct Step {
  KernelKey kernel;
  std::vector<std::byte> push;
  std::vector<TensorId> bindings;
  std::array<uint32_t, 3> groups;
  size_t node = 0;    ///< which node of the segment it belongs to
  double work = 0;    ///< multiply-adds, or elements moved: for slices of submits
  bool dead = false;  ///< a later step does its work too
  int64_t turns = 0;  ///< loop turns of one invocation, all loops together; 0: few, whatever the sizes
  /// What of each binding's tensor the kernel sees; empty: all of every one.
  std::vector<Extent> windows{};

  /// The push constants as the struct of the kernel's line in kernels.inc.
  template <class P>
  P& params() {
    assert(sizeof(P) == push.size());
    return *reinterpret_cast<P*>(push.data());
  }
  template <class P>
  const P& params() const {
    assert(sizeof(P) == push.size());
    return *reinterpret_cast<const P*>(push.data());
  }
};

inline int64_t get(const Step& s, Field field) {
  PushInt value;
  std::memcpy(&value, s.push.data() + field.offset, sizeof(value));
  return value;
}
inline void set(Step& s, Field field, PushInt value) {
  std::memcpy(s.push.data() + field.offset, &value, sizeof(value));
}
inline void set_float(Step& s, Field field, PushFloat value) {
  std::memcpy(s.push.data() + field.offset, &value, sizeof(value));
}

/// A constant in a kernel's layout: `fill` writes `count` floats, which are then stored in 32 or 16 bits; or int32.
struct WeightRequest {
  std::string key;  ///< unique among those of a program
  size_t count = 0;
  bool f16 = false;
  std::function<Status(std::span<float>)> fill;  ///< int32 are written through their bits
  /// It depends on sizes or contents of the plan's inputs, and is kept no longer than the plans that use it; constants
  /// of the model are kept with the program.
  bool of_sizes = false;
  size_t bytes() const { return (count * (f16 ? 2 : 4) + 15) / 16 * 16; }
};

/// One value of the graph on the device, in one or both of two layouts: dense row-major, and an NC4HW4 buffer, which is
/// [N, ceil(C / 4), pixels] of vec4 whose lanes beyond C are finite numbers. Floats are in the storage type, integers
/// and bool in 32 bits; NC4HW4 buffers of int8: see is_byte.
struct LoweredValue {
  const TensorType* type = nullptr;
  const void* data = nullptr;  ///< contents of a constant, unless its check is due
  bool constant = false;
  TensorId dense = kNoTensor, nc4hw4 = kNoTensor;
  int32_t dense_step = -1, nc4hw4_step = -1;  ///< which step makes it
  std::string contents{};                     ///< tells constants that depend on the sizes of inputs apart; else empty
  bool one_reader = false;                    ///< exactly one node reads it, and it does not leave the segment
};

/// [N, C, pixels] of a type: of rank 3 and more, with the spatial dimensions as one.
struct ImageShape {
  int64_t N = 1, C = 1, pixels = 1;
  int64_t blocks() const { return (C + 3) / 4; }
  int64_t vectors() const { return N * blocks() * pixels; }
};
ImageShape image_shape(const TensorType& type);

/// Collects tensors, steps and weights. `dry`: nothing is collected, for verdicts.
class Lowering {
 public:
  Lowering(bool dry, bool f16, std::vector<LoweredValue> values) : dry_(dry), f16_(f16), values_(std::move(values)) {}

  bool dry() const { return dry_; }
  bool f16() const { return f16_; }
  /// Kernels that failed on this device: to be gone around where another one does the same.
  void distrust(std::set<KernelId> kernels) { distrusted_ = std::move(kernels); }
  bool trusts(KernelId id) const { return !distrusted_.contains(id); }
  /// Whether the device has DeviceCaps::simdgroup_matrices; nobody asks a device for verdicts.
  void give_simdgroup_matrices(bool has) { simdgroup_matrices_ = has; }
  bool simdgroup_matrices() const { return simdgroup_matrices_; }
  /// What a kernel that needs its tensors whole may have of each: no more than on any device, that choices are alike.
  void bind_at_most(uint64_t bytes) { binding_bytes_ = std::min<uint64_t>(binding_bytes_, bytes); }
  int64_t binding_bytes() const { return static_cast<int64_t>(binding_bytes_); }
  LoweredValue& value(ValueId id) { return values_[static_cast<size_t>(id)]; }
  TensorId add_tensor(DeviceTensor::Place place, size_t index, size_t bytes);
  TensorId add_weight(WeightRequest request);
  /// Bytes of an element of a value of this type.
  size_t element_bytes(const TensorType& type) const;
  /// The index of the step.
  int32_t add_step(Step step);

  /// The value in this layout; a step is added if it only has the other, or is an input of the segment.
  TensorId dense(ValueId id);
  TensorId nc4hw4(ValueId id);
  /// Leaves the value where the host reads it as output `index`.
  void leave(ValueId id, size_t index);

  /// of_sizes: an operand's contents depend on the sizes of inputs, and so do all constants of the node's own.
  void begin_node(size_t index, std::string key, bool of_sizes) {
    node_ = index;
    key_ = std::move(key);
    of_sizes_ = of_sizes;
  }
  const std::string& key() const { return key_; }
  bool of_sizes() const { return of_sizes_; }
  /// The value is known from here on; its bytes live as long as this.
  void know(ValueId id, std::shared_ptr<const Constant> data);
  std::vector<DeviceTensor>& tensors() { return tensors_; }
  std::vector<Step>& steps() { return steps_; }
  std::vector<WeightRequest>& weights() { return weights_; }
  /// A device error record for one more step of the node; what the host says of it begins with `label`.
  TensorId add_error_record(std::string label);
  std::vector<std::string>& error_labels() { return error_labels_; }
  /// Constants that it made, which the fill functions of weights look at.
  std::vector<std::shared_ptr<const Constant>>& known() { return known_; }

 private:
  int32_t int8_to_dense(const LoweredValue& v, TensorId to);

  bool dry_, f16_, simdgroup_matrices_ = false;
  std::vector<LoweredValue> values_;
  std::vector<DeviceTensor> tensors_;
  std::vector<Step> steps_;
  std::vector<WeightRequest> weights_;
  std::set<KernelId> distrusted_;
  uint64_t binding_bytes_ = uint64_t{128} << 20;
  std::vector<std::shared_ptr<const Constant>> known_;
  std::vector<std::string> error_labels_;
  size_t node_ = 0;
  std::string key_;
  bool of_sizes_ = false;
};

/// Turns of a loop over `count` whose body has loops of `each` turns. The check that ends a loop counts as a turn:
/// Mesa's software Vulkan does so. Loops of a constant handful of turns do not count, since compilers unroll them;
/// those that halve or double their counter do.
constexpr int64_t loop_turns(int64_t count, int64_t each = 0) {
  return count * (1 + each) + 1;
}
/// Of the elements that each of a workgroup's 64 invocations goes through.
constexpr int64_t shared_turns(int64_t elements, int64_t each = 0) {
  return loop_turns((elements + 63) / 64, each);
}
/// Of the tree that joins what 64 invocations found.
inline constexpr int64_t kTreeTurns = loop_turns(6);
/// Of a search for one of 256 bytes by halves.
inline constexpr int64_t kByteSearchTurns = loop_turns(8);

/// Groups for `items` invocations of a kernel over a line, with as many groups in one row as every device has.
std::array<uint32_t, 3> line_groups(int64_t items, uint32_t local);
/// The same for one group per item.
inline std::array<uint32_t, 3> row_groups(int64_t rows) {
  return line_groups(rows, 1);
}
inline uint32_t groups_of(int64_t items, int64_t per_group) {
  return static_cast<uint32_t>((items + per_group - 1) / per_group);
}

/// Codes of functions.inc, then of unary.inc; cmake/shaders.py counts in the same way.
enum class Function : int32_t {
#define FUNCTION(name) k_##name,
#include "backends/gpu/functions.inc"
#undef FUNCTION
#define UNARY_POWER(name)
#define UNARY_ALONE(name) k_##name,
#define UNARY_FUSED(name) k_##name,
#define UNARY_EPILOGUE(name) k_##name,
#define UNARY(kind, name, use, ...) UNARY_##use(name)
#include "ops/unary.inc"
#undef UNARY
#undef UNARY_POWER
#undef UNARY_ALONE
#undef UNARY_FUSED
#undef UNARY_EPILOGUE
};
/// The code of a unary function that is not of use POWER.
Function function_of(UnaryKind kind);

/// An activation as kernels take it.
struct Epilogue {
  Function function = Function::k_none;
  double a = 0, b = 0;
};
Epilogue epilogue_of(const Activation& activation);
/// Whether the epilogue of products has it; the elementwise kernels have all.
bool in_epilogue(const Activation& activation);

/// One node as its lowering sees it.
class NodeLowering {
 public:
  NodeLowering(Lowering& lowering, const NodeView& view, std::span<const TensorType* const> outputs)
      : lowering_(lowering), view_(view), outputs_(outputs) {}

  Lowering& all() { return lowering_; }
  const NodeView& view() const { return view_; }
  const Node& node() const { return view_.node(); }
  const TensorType& in(int i) const { return view_.input(i); }
  bool has(int i) const { return view_.has_input(i); }
  const TensorType& out(int i = 0) const { return *outputs_[static_cast<size_t>(i)]; }
  ValueId in_id(int i) const { return node().inputs[static_cast<size_t>(i)]; }
  ValueId out_id(int i = 0) const { return node().outputs[static_cast<size_t>(i)]; }
  LoweredValue& in_value(int i) { return lowering_.value(in_id(i)); }
  bool constant(int i) { return in_value(i).constant; }
  bool trusts(KernelId id) const { return lowering_.trusts(id); }
  bool simdgroup_matrices() const { return lowering_.simdgroup_matrices(); }
  /// Contents of a float constant as doubles; in a dry run ones, unless it is a single number.
  std::vector<double> floats(int i) const;

  TensorId dense(int i) {
    note_wide(i);
    return lowering_.dense(in_id(i));
  }
  TensorId nc4hw4(int i) { return lowering_.nc4hw4(in_id(i)); }
  /// True if the value exists as an NC4HW4 buffer and not dense.
  bool held_as_nc4hw4(int i) {
    const LoweredValue& v = in_value(i);
    return v.nc4hw4 != kNoTensor && v.dense == kNoTensor;
  }
  /// A new tensor for output o, of which the next step is the maker.
  TensorId make_dense(int o = 0);
  TensorId make_nc4hw4(int o = 0);
  /// A tensor that only this node's steps use; `type` says what its elements are.
  TensorId make_scratch(int64_t elements, DType type = DType::kF32);
  /// Where a step of this node says what is wrong with its operands.
  TensorId error_record() { return lowering_.add_error_record(view_.label()); }
  /// Output o is input i in dense layout, whose bytes it shares.
  void alias(int o, int i);
  /// A constant of the storage type that only this node reads.
  TensorId weights(std::string_view what, int64_t count, std::function<Status(std::span<float>)> fill);
  /// The same of 32-bit floats or int32, in fp16 sessions too.
  TensorId wide_weights(std::string_view what, int64_t count, std::function<Status(std::span<float>)> fill);
  /// The same of a table that depends on the sizes of operands, which `what` names: it goes with the plan.
  TensorId size_table(std::string_view what, int64_t count, std::function<Status(std::span<float>)> fill);
  /// wide: the kernel's variant for 32 bits in fp16 sessions too.
  int32_t step(KernelId id, SpecValues constants, PushBytes params, std::vector<TensorId> bindings,
               std::array<uint32_t, 3> groups, double work, bool wide = false);
  /// The same of a kernel without specialisation constants.
  int32_t step(KernelId id, PushBytes params, std::vector<TensorId> bindings, std::array<uint32_t, 3> groups,
               double work, bool wide = false) {
    return step(id, SpecValues(), params, std::move(bindings), groups, work, wide);
  }

  /// Loop turns of one invocation of the next step, all loops together, nested and consecutive ones (loop_turns): to be
  /// told where sizes of the model can make them many (DeviceCaps::max_turns).
  void loops(int64_t turns) { turns_ = turns; }

  /// A step that was changed to do this node's work as well.
  void repeat(Step step);

  /// kUnsupported; the verdict has the rule.
  Status refuse(Rule rule, std::string value);
  /// Refuses all but f32, f16 and bf16 for input i.
  Status require_float(int i);
  const Verdict& verdict() const { return verdict_; }
  /// A number that was read dense and that 32 bits do not hold.
  const std::optional<int64_t>& wide() const { return wide_; }

 private:
  void note_wide(int i);

  Lowering& lowering_;
  const NodeView& view_;
  std::span<const TensorType* const> outputs_;
  Verdict verdict_;
  std::optional<int64_t> wide_;
  int64_t turns_ = 0;  // of the next step
};

using LowerFn = Status (*)(NodeLowering&);
LowerFn find_lowering(std::string_view op);
#define LOWERING(op, function) Status function(NodeLowering&);
#include "backends/gpu/lowerings.inc"
#undef LOWERING
#define QUANTIZED_LOWERING(op, function) Status function(NodeLowering&);
#include "backends/gpu/quantized_lowerings.inc"
#undef QUANTIZED_LOWERING

/// The same for an operator on quantised tensors: quantized_lowerings.inc.
LowerFn find_quantized_lowering(std::string_view op);

/// Integers of 8 bits, quantised or not: dense tensors have an int32 for each, NC4HW4 buffers four channels of a pixel
/// in 32 bits, as unsigned bytes, for which byte_offset is added.
inline bool is_byte(DType t) {
  return t == DType::kI8 || t == DType::kU8;
}
inline int32_t byte_offset(DType t) {
  return t == DType::kI8 ? 128 : 0;
}

/// Floats of the storage type; all else is held as 32-bit integers.
inline bool is_device_float(DType t) {
  return t == DType::kF32 || t == DType::kF16 || t == DType::kBF16;
}

/// Lowers one node after the checks that all nodes share; the verdict has rule or kernels.
Status lower_node(Lowering& lowering, const NodeView& view, std::span<const TensorType* const> outputs,
                  Verdict& verdict);
/// The answer of supports().
Verdict lower_alone(const NodeView& node);

}  // namespace pinnace::gpu
