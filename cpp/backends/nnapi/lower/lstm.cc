// lstm as UNIDIRECTIONAL_SEQUENCE_LSTM or BIDIRECTIONAL_SEQUENCE_LSTM from feature level 3 on, whose states are outputs
// from feature level 4 on; below that, or where feature level 3 would lose the last cell, LSTM step by step.
#include "backends/nnapi/steps/recurrent.h"

namespace pinnace::nnapi_client {
namespace {

constexpr std::string_view kDefaults[] = {"sigmoid", "tanh", "tanh"};
enum Gate : int { kInputGate = 0, kOutputGate = 1, kForgetGate = 2, kCellGate = 3 };

/// W_i W_f W_g W_o, R likewise, p_i p_f p_o, b_i b_f b_g b_o, P and its bias: NNAPI's inputs 1 to 17.
///
/// Coupled gates: NNAPI takes the input gate as 1 - f where we take the forget gate as 1 - i. Since 1 - sigmoid(z) is
/// sigmoid(-z), its forget gate gets the input gate's weights with the other sign.
void append_cell(NodeLowering& n, RecurrentLowering& r, uint32_t d, std::vector<OperandId>& inputs) {
  const bool coupled = n.view().attr_int("input_forget") != 0;
  const auto forget = coupled ? kInputGate : kForgetGate;
  const double sign = coupled ? -1 : 1;
  for (int input : {1, 2}) {
    inputs.push_back(coupled ? r.omitted() : r.matrix(input, d, kInputGate));
    inputs.push_back(r.matrix(input, d, forget, sign));
    inputs.push_back(r.matrix(input, d, kCellGate));
    inputs.push_back(r.matrix(input, d, kOutputGate));
  }
  const bool holes = n.has(7);  // i, o, f
  inputs.push_back(holes && !coupled ? r.peephole(d, 0) : r.omitted());
  inputs.push_back(holes ? r.peephole(d, coupled ? 0 : 2, sign) : r.omitted());
  inputs.push_back(holes ? r.peephole(d, 1) : r.omitted());
  using Bias = RecurrentLowering::Bias;
  inputs.push_back(coupled ? r.omitted() : r.bias(d, kInputGate));
  inputs.push_back(r.bias(d, forget, Bias::kBoth, sign));
  inputs.push_back(r.bias(d, kCellGate));
  inputs.push_back(r.bias(d, kOutputGate));
  inputs.push_back(r.omitted());
  inputs.push_back(r.omitted());
}

void append_omitted(RecurrentLowering& r, int count, std::vector<OperandId>& inputs) {
  for (int i = 0; i < count; ++i) inputs.push_back(r.omitted());
}

/// The states as outputs where there are any, else the last element of y.
Status take_states(NodeLowering& n, RecurrentLowering& r, uint32_t d, Direction& made) {
  if (made.h != kNoOperand || n.view().output_count() < 2) return {};
  PINNACE_ASSIGN(made.h, r.element(made, r.times(d).back()));
  return {};
}

Status by_sequence(NodeLowering& n, RecurrentLowering& r, int code) {
  const TensorType& like = n.in_type(0);
  const bool states = n.feature_level() >= 4;
  const OperandId nothing = n.real(0, like);
  std::vector<Direction> made(r.D);
  std::vector<OperandId> inputs = {r.x}, outputs;
  if (r.D == 1 && r.reverse) {
    PINNACE_ASSIGN(inputs[0], r.turned(r.x));
  }
  for (uint32_t d = 0; d < r.D; ++d) {
    append_cell(n, r, d, inputs);
    made[d].time_major = !r.batch_first;
    made[d].y = n.temp(r.x, {n.operand(r.x).dims[0], n.operand(r.x).dims[1], r.H});
    outputs.push_back(made[d].y);
  }
  for (uint32_t d = 0; d < r.D; ++d) {
    for (int input : {5, 6}) {
      PINNACE_ASSIGN(const OperandId state, r.initial(input, d));
      inputs.push_back(state);
    }
    if (!states) continue;
    made[d].h = n.temp(r.x, {r.B, r.H});
    made[d].c = n.temp(r.x, {r.B, r.H});
    outputs.insert(outputs.end(), {made[d].h, made[d].c});
  }
  if (r.D == 2) append_omitted(r, 9, inputs);  // auxiliary input and its weights
  inputs.insert(inputs.end(), {n.scalar(code), nothing, nothing});
  if (r.D == 2) inputs.push_back(n.flag(false));  // both outputs by themselves
  inputs.push_back(n.flag(!r.batch_first));
  append_omitted(r, r.D == 2 ? 8 : 4, inputs);  // normalisation
  PINNACE_TRY(n.add(r.D == 2 ? Op::BIDIRECTIONAL_SEQUENCE_LSTM : Op::UNIDIRECTIONAL_SEQUENCE_LSTM, std::move(inputs),
                    std::move(outputs)));
  if (r.D == 1 && r.reverse) {
    PINNACE_ASSIGN(made[0].y, r.turned(made[0].y));
  }
  for (uint32_t d = 0; d < r.D; ++d) PINNACE_TRY(take_states(n, r, d, made[d]));
  return r.finish(made);
}

Status by_steps(NodeLowering& n, RecurrentLowering& r, int code) {
  PINNACE_TRY(r.check_steps());
  const OperandId nothing = n.real(0, n.in_type(0));
  const bool coupled = n.view().attr_int("input_forget") != 0;
  PINNACE_ASSIGN(const OperandId rows, r.rows());
  std::vector<Direction> made(r.D);
  for (uint32_t d = 0; d < r.D; ++d) {
    std::vector<OperandId> cell, states(r.T);
    append_cell(n, r, d, cell);
    PINNACE_ASSIGN(OperandId h, r.initial(5, d));
    PINNACE_ASSIGN(OperandId c, r.initial(6, d));
    for (uint32_t t : r.times(d)) {
      PINNACE_ASSIGN(const OperandId x, r.step(rows, t));
      std::vector<OperandId> inputs = {x};
      inputs.insert(inputs.end(), cell.begin(), cell.end());
      inputs.insert(inputs.end(), {h, c, n.scalar(code), nothing, nothing});
      const OperandId scratch = n.temp(x, {r.B, (coupled ? 3 : 4) * r.H}), last = n.temp(x, {r.B, r.H});
      h = n.temp(last);
      c = n.temp(last);
      PINNACE_TRY(n.add(Op::LSTM, std::move(inputs), std::vector<OperandId>{scratch, last, c, h}));
      states[t] = h;
    }
    PINNACE_ASSIGN(made[d].y, r.sequence(states));
    made[d].h = h;
    made[d].c = c;
  }
  return r.finish(made);
}

}  // namespace

Status lower_lstm(NodeLowering& n) {
  PINNACE_ASSIGN(RecurrentLowering r, RecurrentLowering::open(n, 4, kDefaults));
  int code = -1;
  for (uint32_t d = 0; d < r.D; ++d) {
    const GateActivation* a = r.activations.data() + size_t{d} * 3;
    const int own =
        recurrent_code(a[0]) == 6 && recurrent_code(a[1]) == recurrent_code(a[2]) ? recurrent_code(a[1]) : -1;
    if (own < 0 || (d == 1 && own != code)) return n.refuse(Rule::kAttribute, "activations");
    code = own;
  }
  const bool whole = n.feature_level() >= 4 || (n.feature_level() == 3 && n.view().output_count() < 3);
  return whole ? by_sequence(n, r, code) : by_steps(n, r, code);
}

}  // namespace pinnace::nnapi_client
