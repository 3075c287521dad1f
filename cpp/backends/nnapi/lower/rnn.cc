// rnn as UNIDIRECTIONAL_SEQUENCE_RNN or BIDIRECTIONAL_SEQUENCE_RNN from feature level 3 on; below it, RNN step by step.
#include "backends/nnapi/steps/recurrent.h"

namespace pinnace::nnapi_client {
namespace {

constexpr std::string_view kDefaults[] = {"tanh"};

Status by_sequence(NodeLowering& n, RecurrentLowering& r, int code) {
  const bool states = n.feature_level() >= 4;
  std::vector<Direction> made(r.D);
  std::vector<OperandId> inputs = {r.x}, outputs, lasts;
  if (r.D == 1 && r.reverse) {
    PINNACE_ASSIGN(inputs[0], r.turned(r.x));
  }
  for (uint32_t d = 0; d < r.D; ++d) {
    PINNACE_ASSIGN(const OperandId state, r.initial(5, d));
    inputs.insert(inputs.end(), {r.matrix(1, d, 0), r.matrix(2, d, 0), r.bias(d, 0), state});
    made[d].time_major = !r.batch_first;
    made[d].y = n.temp(r.x, {n.operand(r.x).dims[0], n.operand(r.x).dims[1], r.H});
    outputs.push_back(made[d].y);
    if (!states) continue;
    made[d].h = n.temp(r.x, {r.B, r.H});
    lasts.push_back(made[d].h);
  }
  outputs.insert(outputs.end(), lasts.begin(), lasts.end());
  if (r.D == 2) {
    for (int i = 0; i < 3; ++i) inputs.push_back(r.omitted());  // auxiliary input and its weights
    inputs.insert(inputs.end(), {n.scalar(code), n.flag(!r.batch_first), n.flag(false)});
  } else {
    inputs.insert(inputs.end(), {n.scalar(code), n.scalar(r.batch_first ? 0 : 1)});
  }
  PINNACE_TRY(n.add(r.D == 2 ? Op::BIDIRECTIONAL_SEQUENCE_RNN : Op::UNIDIRECTIONAL_SEQUENCE_RNN, std::move(inputs),
                    std::move(outputs)));
  if (r.D == 1 && r.reverse) {
    PINNACE_ASSIGN(made[0].y, r.turned(made[0].y));
  }
  for (uint32_t d = 0; d < r.D && n.view().output_count() > 1; ++d) {
    if (made[d].h != kNoOperand) continue;
    PINNACE_ASSIGN(made[d].h, r.element(made[d], r.times(d).back()));
  }
  return r.finish(made);
}

Status by_steps(NodeLowering& n, RecurrentLowering& r, int code) {
  PINNACE_TRY(r.check_steps());
  PINNACE_ASSIGN(const OperandId rows, r.rows());
  std::vector<Direction> made(r.D);
  for (uint32_t d = 0; d < r.D; ++d) {
    const OperandId w = r.matrix(1, d, 0), own = r.matrix(2, d, 0), bias = r.bias(d, 0);
    std::vector<OperandId> states(r.T);
    PINNACE_ASSIGN(OperandId h, r.initial(5, d));
    for (uint32_t t : r.times(d)) {
      PINNACE_ASSIGN(const OperandId x, r.step(rows, t));
      const OperandId next = n.temp(x, {r.B, r.H}), y = n.temp(next);
      PINNACE_TRY(n.add(Op::RNN, {x, w, own, bias, h, n.scalar(code)}, std::vector<OperandId>{next, y}));
      states[t] = y;
      h = next;
    }
    PINNACE_ASSIGN(made[d].y, r.sequence(states));
    made[d].h = h;
  }
  return r.finish(made);
}

}  // namespace

Status lower_rnn(NodeLowering& n) {
  PINNACE_ASSIGN(RecurrentLowering r, RecurrentLowering::open(n, 1, kDefaults));
  const int code = recurrent_code(r.activations[0]);
  if (code < 0 || recurrent_code(r.activations.back()) != code) return n.refuse(Rule::kAttribute, "activations");
  return n.feature_level() >= 3 ? by_sequence(n, r, code) : by_steps(n, r, code);
}

}  // namespace pinnace::nnapi_client
