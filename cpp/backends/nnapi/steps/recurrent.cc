// Weights, states and outputs of recurrent operators.
#include "backends/nnapi/steps/recurrent.h"

#include <algorithm>
#include <cstring>

#include "backends/nnapi/steps/shape.h"
#include "base/half.h"

namespace pinnace::nnapi_client {

using enum nnapi::OperandCode;

namespace {

/// A model of more steps costs more to compile than it brings.
constexpr uint32_t kMostSteps = 64;
constexpr int32_t kTurn[] = {1, 0, 2};

double load(const std::byte* data, int64_t i, bool is_f16) {
  if (is_f16) return half_to_float(reinterpret_cast<const uint16_t*>(data)[i]);
  return reinterpret_cast<const float*>(data)[i];
}
void store(std::byte* to, int64_t i, bool is_f16, double v) {
  if (is_f16) {
    reinterpret_cast<uint16_t*>(to)[i] = float_to_half(static_cast<float>(v));
  } else {
    reinterpret_cast<float*>(to)[i] = static_cast<float>(v);
  }
}

}  // namespace

int recurrent_code(const GateActivation& a) {
  using Kind = GateActivation::Kind;
  if (a.kind == Kind::kAffine && a.alpha == 1 && a.beta == 0) return 0;
  if (a.kind == Kind::kRelu) return 1;
  if (a.kind == Kind::kTanh) return 4;
  return a.kind == Kind::kSigmoid ? 6 : -1;
}

Result<RecurrentLowering> RecurrentLowering::open(NodeLowering& n, int gates,
                                                  std::span<const std::string_view> defaults) {
  RecurrentLowering made(n);
  std::vector<TensorType> types(static_cast<size_t>(n.view().output_count()));
  PINNACE_ASSIGN(const Recurrent sizes, check_recurrent(n.view(), gates, types));
  PINNACE_ASSIGN(made.activations, gate_activations(n.view(), defaults));
  if (sizes.projected) return n.refuse(Rule::kAttribute, "a projection");
  made.T = static_cast<uint32_t>(sizes.T.size);
  made.B = static_cast<uint32_t>(sizes.B.size);
  made.I = static_cast<uint32_t>(sizes.I.size);
  made.H = static_cast<uint32_t>(sizes.H.size);
  made.D = static_cast<uint32_t>(sizes.directions);
  made.reverse = sizes.reverse;
  made.batch_first = sizes.batch_first;
  made.gates_ = gates;
  const DType dtype = n.in_type(0).dtype;
  if (dtype != DType::kF32 && dtype != DType::kF16) return n.refuse(Rule::kType, to_string(n.in_type(0)));
  if (made.activations[0].clip > 0) return n.refuse(Rule::kAttribute, str_cat("clip ", made.activations[0].clip));
  for (int i : {1, 2, 3, 7}) {
    if (n.has(i) && !n.constant(i)) return n.refuse(Rule::kConstant, to_string(n.in_type(i)));
  }
  if (n.has(4)) {
    const auto lengths = n.view().input_ints(4);
    if (!lengths) return n.refuse(Rule::kConstant, "sequence_lens");
    for (int64_t length : *lengths) {
      if (length != sizes.T.size)
        return n.refuse(Rule::kAttribute, str_cat("a sequence of ", length, " of ", sizes.T.size));
    }
  }
  PINNACE_ASSIGN(made.x, n.in(0));
  return made;
}

OperandId RecurrentLowering::constant(int input, std::vector<uint32_t> dims, int64_t first, int64_t second,
                                      double factor, std::string_view role) {
  int64_t count = 1;
  for (uint32_t d : dims) count *= d;
  const auto* data = static_cast<const std::byte*>(n_->data(input));
  const bool is_f16 = type() == kTensorFloat16;
  const auto fill = [=](std::byte* to) {
    for (int64_t i = 0; i < count; ++i) {
      const double other = second < 0 ? 0 : load(data, second + i, is_f16);
      store(to, i, is_f16, factor * (load(data, first + i, is_f16) + other));
    }
  };
  return n_->lowering().add_weight({type(), std::move(dims)}, str_cat(role, "@", first, "+", second, "*", factor), fill,
                                   true);
}

OperandId RecurrentLowering::matrix(int input, uint32_t d, int gate, double factor) {
  const uint32_t columns = input == 1 ? I : H;
  const int64_t first = (int64_t{d} * gates_ + gate) * H * columns;
  return constant(input, {H, columns}, first, -1, factor, input == 1 ? "w" : "r");
}

OperandId RecurrentLowering::bias(uint32_t d, int gate, Bias which, double factor) {
  if (!n_->has(3)) {
    return n_->lowering().add_weight(
        {type(), {H}}, "zeros", [bytes = H * nnapi::info(type()).bytes](std::byte* to) { std::memset(to, 0, bytes); });
  }
  const int64_t of_w = (int64_t{d} * 2 * gates_ + gate) * H, of_r = of_w + int64_t{gates_} * H;
  return constant(3, {H}, which == Bias::kOfR ? of_r : of_w, which == Bias::kBoth ? of_r : -1, factor, "b");
}

OperandId RecurrentLowering::peephole(uint32_t d, int which, double factor) {
  return constant(7, {H}, (int64_t{d} * 3 + which) * H, -1, factor, "p");
}

OperandId RecurrentLowering::omitted() {
  return n_->lowering().add_operand({type(), {0}}, nnapi::Lifetime::kOmitted);
}

Result<OperandId> RecurrentLowering::initial(int input, uint32_t d) {
  if (!n_->has(input)) {
    return n_->lowering().add_weight(
        {type(), {B, H}}, "nothing",
        [bytes = size_t{B} * H * nnapi::info(type()).bytes](std::byte* to) { std::memset(to, 0, bytes); });
  }
  PINNACE_ASSIGN(OperandId state, n_->in(input));  // [D, B, H] or [B, D, H]
  if (D == 2) {
    const auto at = static_cast<int32_t>(d), b = static_cast<int32_t>(B), h = static_cast<int32_t>(H);
    const int32_t begin[] = {batch_first ? 0 : at, batch_first ? at : 0, 0}, ones[] = {1, 1, 1};
    const int32_t end[] = {batch_first ? b : at + 1, batch_first ? at + 1 : b, h};
    const OperandId part =
        n_->temp(state, batch_first ? std::vector<uint32_t>{B, 1, H} : std::vector<uint32_t>{1, B, H});
    PINNACE_TRY(n_->add(
        Op::STRIDED_SLICE,
        {state, n_->ints(begin), n_->ints(end), n_->ints(ones), n_->scalar(0), n_->scalar(0), n_->scalar(0)}, part));
    state = part;
  }
  return reshaped(*n_, state, {B, H});
}

Result<OperandId> RecurrentLowering::rows() {
  OperandId first = x;
  if (batch_first && B > 1 && T > 1) {
    PINNACE_ASSIGN(first, transposed(*n_, x, kTurn));
  }
  return reshaped(*n_, first, {T * B, I});
}

Result<OperandId> RecurrentLowering::step(OperandId rows, uint32_t t) {
  if (T == 1) return rows;
  const uint32_t columns = n_->operand(rows).dims[1];
  const OperandId part = n_->temp(rows, {B, columns});
  const int32_t begin[] = {static_cast<int32_t>(t * B), 0}, ones[] = {1, 1};
  const int32_t end[] = {static_cast<int32_t>((t + 1) * B), static_cast<int32_t>(columns)};
  PINNACE_TRY(n_->add(
      Op::STRIDED_SLICE,
      {rows, n_->ints(begin), n_->ints(end), n_->ints(ones), n_->scalar(0), n_->scalar(0), n_->scalar(0)}, part));
  return part;
}

Status RecurrentLowering::check_steps() {
  if (T > kMostSteps) return n_->refuse(Rule::kSteps, str_cat(T, ", at most ", kMostSteps));
  n_->rewritten("step by step");
  return {};
}

std::vector<uint32_t> RecurrentLowering::times(uint32_t d) const {
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < T; ++i) all.push_back(reverse || d == 1 ? T - 1 - i : i);
  return all;
}

Result<OperandId> RecurrentLowering::sequence(const std::vector<OperandId>& states) {
  if (T == 1) return reshaped(*n_, states[0], {1, B, H});
  std::vector<OperandId> inputs = states;
  inputs.push_back(n_->scalar(0));
  const OperandId all = n_->temp(states[0], {T * B, H});
  PINNACE_TRY(n_->add(Op::CONCATENATION, std::move(inputs), all));
  return reshaped(*n_, all, {T, B, H});
}

Result<OperandId> RecurrentLowering::element(const Direction& d, uint32_t t) {
  const int axis = d.time_major ? 0 : 1;
  std::vector<uint32_t> dims = n_->operand(d.y).dims;
  std::vector<int32_t> begin(3, 0), end(dims.begin(), dims.end());
  const int32_t ones[] = {1, 1, 1};
  begin[static_cast<size_t>(axis)] = static_cast<int32_t>(t);
  end[static_cast<size_t>(axis)] = static_cast<int32_t>(t) + 1;
  dims[static_cast<size_t>(axis)] = 1;
  const OperandId part = n_->temp(d.y, dims);
  PINNACE_TRY(n_->add(
      Op::STRIDED_SLICE,
      {d.y, n_->ints(begin), n_->ints(end), n_->ints(ones), n_->scalar(0), n_->scalar(0), n_->scalar(0)}, part));
  return reshaped(*n_, part, {B, H});
}

Result<OperandId> RecurrentLowering::turned(OperandId y) {
  const OperandId order = n_->lowering().add_weight({kTensorInt32, {T}}, "turned", [count = T](std::byte* to) {
    for (uint32_t i = 0; i < count; ++i) reinterpret_cast<int32_t*>(to)[i] = static_cast<int32_t>(count - 1 - i);
  });
  const OperandId made = n_->temp(y);
  PINNACE_TRY(n_->add(Op::GATHER, {y, n_->scalar(batch_first ? 1 : 0), order}, made));
  return made;
}

Status RecurrentLowering::finish(const std::vector<Direction>& directions) {
  std::vector<OperandId> ys, states[2];
  for (const Direction& d : directions) {
    OperandId y = d.y;
    if (batch_first && d.time_major) {
      if (B > 1 && T > 1) {
        PINNACE_ASSIGN(y, transposed(*n_, y, kTurn));
      } else {
        PINNACE_ASSIGN(y, reshaped(*n_, y, {B, T, H}));
      }
    }
    ys.push_back(y);
    states[0].push_back(d.h);
    states[1].push_back(d.c);
  }
  // Directions side by side: along dimension 1 or 2 of y, 0 or 1 of the states.
  const auto put = [&](const std::vector<OperandId>& parts, std::vector<uint32_t> dims, int axis,
                       int output) -> Status {
    PINNACE_ASSIGN(const OperandId to, n_->out(output));
    if (parts.size() == 1) return reshape_into(*n_, parts[0], to);
    dims.insert(dims.begin() + axis, 1);
    std::vector<OperandId> inputs;
    for (OperandId part : parts) {
      PINNACE_ASSIGN(const OperandId wide, reshaped(*n_, part, dims));
      inputs.push_back(wide);
    }
    inputs.push_back(n_->scalar(axis));
    return n_->add(Op::CONCATENATION, std::move(inputs), to);
  };
  const auto sizes = batch_first ? std::vector<uint32_t>{B, T, H} : std::vector<uint32_t>{T, B, H};
  PINNACE_TRY(put(ys, sizes, batch_first ? 2 : 1, 0));
  for (int i = 1; i < n_->view().output_count(); ++i) {
    PINNACE_TRY(put(states[i - 1], {B, H}, batch_first ? 1 : 0, i));
  }
  return {};
}

}  // namespace pinnace::nnapi_client
