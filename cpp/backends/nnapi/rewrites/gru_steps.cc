// gru, which NNAPI does not have, step by step from feature level 2 on: what the input brings to the gates is three
// products for all elements of time at once; each step then adds three products of the state. h' = n + z (h - n)
// instead of (1 - z) n + z h: within 2^-22 of the larger of both states a step.
#include "backends/nnapi/steps/floats.h"
#include "backends/nnapi/steps/recurrent.h"

namespace pinnace::nnapi_client {
namespace {

constexpr std::string_view kDefaults[] = {"sigmoid", "tanh"};
enum Gate : int { kUpdate = 0, kReset = 1, kNew = 2 };

/// FULLY_CONNECTED of rows [N, K] by [H, K].
Result<OperandId> product(NodeLowering& n, OperandId rows, OperandId matrix, OperandId bias) {
  const OperandId y = n.temp(rows, {n.operand(rows).dims[0], n.operand(matrix).dims[0]});
  PINNACE_TRY(n.add(Op::FULLY_CONNECTED, {rows, matrix, bias, n.scalar(0)}, y));
  return y;
}

}  // namespace

Status lower_gru(NodeLowering& n) {
  PINNACE_ASSIGN(RecurrentLowering r, RecurrentLowering::open(n, 3, kDefaults));
  const bool linear_first = n.view().attr_int("linear_before_reset") != 0;
  for (uint32_t d = 0; d < r.D; ++d) {
    const int code = recurrent_code(r.activations[size_t{d} * 2 + 1]);
    if (recurrent_code(r.activations[size_t{d} * 2]) != 6 || (code != 4 && code != 1 && code != 6)) {
      return n.refuse(Rule::kAttribute, "activations");
    }
  }
  PINNACE_TRY(r.check_steps());
  PINNACE_ASSIGN(const OperandId rows, r.rows());
  using Bias = RecurrentLowering::Bias;
  std::vector<Direction> made(r.D);
  for (uint32_t d = 0; d < r.D; ++d) {
    OperandId given[3], own[3];
    for (int gate : {kUpdate, kReset, kNew}) {
      const bool apart = gate == kNew && linear_first;
      PINNACE_ASSIGN(given[gate],
                     product(n, rows, r.matrix(1, d, gate), r.bias(d, gate, apart ? Bias::kOfW : Bias::kBoth)));
      own[gate] = r.matrix(2, d, gate);
    }
    const OperandId zeros = n.lowering().add_weight(
        {r.type(), {r.H}}, "none",
        [bytes = r.H * nnapi::info(r.type()).bytes](std::byte* to) { std::fill_n(to, bytes, std::byte{0}); });
    const OperandId own_bias = linear_first ? r.bias(d, kNew, Bias::kOfR) : zeros;
    const int code = recurrent_code(r.activations[size_t{d} * 2 + 1]);
    const Op activation = code == 4 ? Op::TANH : code == 1 ? Op::RELU : Op::LOGISTIC;
    PINNACE_ASSIGN(OperandId h, r.initial(5, d));
    std::vector<OperandId> states(r.T);
    for (uint32_t t : r.times(d)) {
      OperandId x[3];
      for (int gate : {kUpdate, kReset, kNew}) {
        PINNACE_ASSIGN(x[gate], r.step(given[gate], t));
      }
      Chain c{n, h};
      PINNACE_ASSIGN(const OperandId of_z, product(n, h, own[kUpdate], zeros));
      PINNACE_ASSIGN(const OperandId of_r, product(n, h, own[kReset], zeros));
      const OperandId z = c.op(Op::LOGISTIC, {c.add(x[kUpdate], of_z)});
      const OperandId reset = c.op(Op::LOGISTIC, {c.add(x[kReset], of_r)});
      PINNACE_TRY(c.status);
      PINNACE_ASSIGN(OperandId of_n, product(n, linear_first ? h : c.mul(reset, h), own[kNew], own_bias));
      if (linear_first) of_n = c.mul(reset, of_n);
      const OperandId fresh = c.op(activation, {c.add(x[kNew], of_n)});
      h = c.add(fresh, c.mul(z, c.sub(h, fresh)));
      PINNACE_TRY(c.status);
      states[t] = h;
    }
    PINNACE_ASSIGN(made[d].y, r.sequence(states));
    made[d].h = h;
  }
  return r.finish(made);
}

}  // namespace pinnace::nnapi_client
