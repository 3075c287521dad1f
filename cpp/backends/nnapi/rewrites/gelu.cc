// erf and gelu, which no feature level has.
// gelu_tanh: x / 2 * (1 + tanh(c (x + 0.044715 x^3))) by its formula: within 1e-6 (1 + |x|).
// erf: Abramowitz and Stegun 7.1.26, |error| < 1.5e-7, with t = 1 / (1 + p |z|), for which DIV (feature level 2), ABS
// and EXP (feature level 3) are needed. Below feature level 3, |z| = relu(z) + relu(-z), and exp(-z^2) = s / (1 - s)
// with s the logistic function of -z^2, so feature level 2 suffices. gelu within 1e-6 (1 + |x|).
#include <cmath>

#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/floats.h"

namespace pinnace::nnapi_client {
namespace {

/// exp(-z) for z >= 0.
OperandId decay(Chain& c, OperandId z) {
  const OperandId turned = c.neg(z);
  if (c.n.feature_level() >= 3) return c.op(Op::EXP, {turned});
  const OperandId s = c.op(Op::LOGISTIC, {turned});
  return c.div(s, c.add(c.neg(s), c.num(1)));
}

/// 1 - erf(z) for z >= 0.
OperandId erf_rest(Chain& c, OperandId z) {
  const OperandId t = c.div(c.num(1), c.add(c.mul(z, c.num(0.3275911)), c.num(1)));
  OperandId poly = c.mul(t, c.num(1.061405429));
  for (double k : {-1.453152027, 1.421413741, -0.284496736, 0.254829592}) poly = c.mul(c.add(poly, c.num(k)), t);
  return c.mul(poly, decay(c, c.mul(z, z)));
}

}  // namespace

Status gelu(NodeLowering& n, OperandId x, OperandId y) {
  n.rewritten("gelu by a polynomial and exp");
  Chain c{n, x};
  // With r = 1 - erf(|x| / sqrt 2): gelu = relu(x) - |x| / 2 * r. From 6 on r is below 2e-9, and infinity times 0 no
  // number.
  const OperandId positive = c.relu(x), magnitude = c.abs(x);
  const OperandId rest = erf_rest(c, c.mul(magnitude, c.num(std::sqrt(0.5))));
  c.add(positive, c.mul(c.mul(c.op(Op::RELU6, {magnitude}), rest), c.num(-0.5)), y);
  return c.status;
}

Status erf(NodeLowering& n, OperandId x, OperandId y) {
  n.rewritten("erf by a polynomial and exp");
  Chain c{n, x};
  const OperandId rest = erf_rest(c, c.abs(x));
  const OperandId sign = n.temp(OperandSpec{nnapi::OperandCode::kTensorBool8, n.operand(x).dims});
  c.op(Op::LESS, {x, c.num(0)}, sign);
  const OperandId value = c.add(c.neg(rest), c.num(1));
  c.op(Op::SELECT, {sign, c.neg(value), value}, y);
  return c.status;
}

Status gelu_tanh(NodeLowering& n, OperandId x, OperandId y) {
  n.rewritten("gelu by tanh");
  Chain c{n, x};
  const OperandId cube = c.mul(c.mul(x, x), x);
  const OperandId inner = c.mul(c.add(x, c.mul(cube, c.num(0.044715))), c.num(0.79788456080286536));
  const OperandId gate = c.mul(c.add(c.op(Op::TANH, {inner}), c.num(1)), c.num(0.5));
  c.mul(x, gate, y);
  return c.status;
}

}  // namespace pinnace::nnapi_client
