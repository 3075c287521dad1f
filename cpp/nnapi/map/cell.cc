// What recurrent cells share.
#include "nnapi/map/cell.h"

#include <algorithm>

namespace pinnace::nnapi {
namespace {

/// `made`, the output of the last node, as a constant if all of that node's inputs are. Type inference computes only
/// small values ahead.
Result<ValueId> folded(Call& call, ValueId made) {
  GraphBuilder& builder = call.builder();
  if (builder.data(made) || builder.graph.nodes.empty()) return made;
  const Node& node = *builder.graph.nodes.back();
  std::vector<TensorView> inputs;
  for (ValueId id : node.inputs) {
    const ConstantPtr& data = builder.data(id);
    if (!data) return made;
    // Reference code only reads its inputs.
    inputs.push_back({&call.type(id), const_cast<std::byte*>(data->data())});
  }
  PINNACE_ASSIGN(auto outputs, run_reference(node, *find_op(node.op), inputs));
  return builder.add_constant(call.name() + "/weights", std::move(outputs[0].type),
                              Constant::of(std::move(outputs[0].bytes)));
}

}  // namespace

Status expect_dims(const Call& call, size_t i, ValueId id, std::initializer_list<int64_t> dims) {
  const Shape& shape = call.type(id).shape;
  const bool fits = shape.size() == dims.size() &&
                    std::equal(shape.begin(), shape.end(), dims.begin(),
                               [](const Dim& is, int64_t wanted) { return wanted < 0 || !is.known() || is == wanted; });
  if (fits) return {};
  TensorType wanted{call.type(id).dtype, {}, nullptr};
  for (int64_t d : dims) wanted.shape.push_back(d < 0 ? Dim() : Dim(d));
  return call.error("input ", i, " is ", call.type(id), ", must be ", wanted);
}

Result<ValueId> float_input(Call& call, size_t i) {
  PINNACE_ASSIGN(const ValueId id, call.in(i));
  PINNACE_ASSIGN(const ValueId as_float, call.cast(id, DType::kF32));
  return as_float == id ? Result<ValueId>(id) : folded(call, as_float);
}

Status finish_float(Call& call, size_t i, ValueId id) {
  const bool half = call.result(i).type == OperandCode::kTensorFloat16;
  PINNACE_ASSIGN(id, call.cast(id, half ? DType::kF16 : DType::kF32));
  return call.finish(i, id);
}

Result<ValueId> zeros(Call& call, int64_t count) {
  TensorType type{DType::kF32, {count}, nullptr};
  PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>(type.bytes()), "a constant"));
  std::fill_n(bytes.data(), bytes.size(), std::byte{0});
  return call.builder().add_constant(call.name() + "/zeros", std::move(type), Constant::of(std::move(bytes)));
}

Result<ValueId> cell_activation(Call& call, ValueId id, int64_t code) {
  switch (code) {
    case 0:
    case 1:
    case 3:
      return call.activate(id, code);
    case 4:
      return call.emit("tanh", {id});
    case 6:
      return call.emit("sigmoid", {id});
    default:
      return call.error("activation ", code, " is not one of 0, 1, 3, 4, 6");
  }
}

Result<std::string> cell_activation_name(const Call& call, int64_t code) {
  switch (code) {
    case 0:
      return std::string("affine");
    case 1:
    case 3:
      return std::string("relu");
    case 4:
      return std::string("tanh");
    case 6:
      return std::string("sigmoid");
    default:
      return call.error("activation ", code, " is not one of 0, 1, 3, 4, 6");
  }
}

Result<ValueId> concat(Call& call, std::vector<ValueId> parts, int64_t axis) {
  if (parts.size() == 1) return parts[0];
  PINNACE_ASSIGN(const ValueId all, call.emit("concat", std::move(parts), {{"axis", axis}}));
  return folded(call, all);
}

Result<ValueId> unsqueeze(Call& call, ValueId id, int64_t axis) {
  PINNACE_ASSIGN(const ValueId axes, call.constant_ints({axis}));
  return call.emit("unsqueeze", {id, axes});
}

Result<ValueId> squeeze(Call& call, ValueId id, int64_t axis) {
  PINNACE_ASSIGN(const ValueId axes, call.constant_ints({axis}));
  return call.emit("squeeze", {id, axes});
}

Result<ValueId> reversed(Call& call, ValueId id) {
  PINNACE_ASSIGN(const ValueId start, call.constant_ints({-1}));
  PINNACE_ASSIGN(const ValueId end, call.constant_ints({INT64_MIN}));
  PINNACE_ASSIGN(const ValueId axes, call.constant_ints({0}));
  PINNACE_ASSIGN(const ValueId step, call.constant_ints({-1}));
  return call.emit("slice", {id, start, end, axes, step});
}

Result<ValueId> swap_time(Call& call, ValueId id, bool nothing) {
  if (call.rank(id) != 3) return call.error("a sequence is ", call.type(id), ", must have rank 3");
  return nothing ? Result<ValueId>(id) : call.transpose(id, {1, 0, 2});
}

Result<Aux> aux_use(const Call& call, size_t input, size_t weights, size_t all) {
  if (!call.has(input)) {
    return weights == 0 ? Result<Aux>(Aux::kNone)
                        : call.error("weights of the auxiliary input ", input, ", which is left out");
  }
  if (weights == 0) return Aux::kParallel;
  if (weights == all) return Aux::kCross;
  return call.error("the auxiliary input ", input, " has ", weights, " weights, must have ", all, " or none");
}

Status finish_bidirectional(Call& call, bool time_major, bool merged, const Sequence& forward,
                            const Sequence& backward) {
  std::vector<ValueId> states = {forward.h, forward.c, backward.h, backward.c};
  std::erase(states, kNoValue);
  const size_t sequences = merged ? 1 : 2;
  if (call.outputs() != sequences && call.outputs() != sequences + states.size()) {
    return call.error(call.outputs(), " outputs, must be ", sequences, " or ", sequences + states.size());
  }
  PINNACE_ASSIGN(const ValueId y, swap_time(call, forward.y, time_major));
  PINNACE_ASSIGN(const ValueId z, swap_time(call, backward.y, time_major));
  if (merged) {
    PINNACE_ASSIGN(const ValueId both, concat(call, {y, z}, 2));
    PINNACE_TRY(finish_float(call, 0, both));
  } else {
    PINNACE_TRY(finish_float(call, 0, y));
    PINNACE_TRY(finish_float(call, 1, z));
  }
  for (size_t i = 0; sequences + i < call.outputs(); ++i) PINNACE_TRY(finish_float(call, sequences + i, states[i]));
  return {};
}

}  // namespace pinnace::nnapi
