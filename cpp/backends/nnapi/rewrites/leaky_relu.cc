// leaky_relu: PRELU from feature level 3 on. Below: relu(x) - alpha * relu(-x), one rounding as there: exact but for
// the sign of zero.
#include "backends/nnapi/rewrites/rewrites.h"

namespace pinnace::nnapi_client {

Status leaky_relu(NodeLowering& n, double alpha, OperandId x, OperandId y) {
  if (n.feature_level() >= 3) return n.add(Op::PRELU, {x, n.number(alpha, x)}, y);
  n.rewritten("leaky_relu by relu of both signs");
  const OperandId positive = n.temp(x), turned = n.temp(x), negative = n.temp(x);
  PINNACE_TRY(n.add(Op::RELU, {x}, positive));
  PINNACE_TRY(n.add(Op::MUL, {x, n.number(-1, x), n.scalar(1)}, turned));  // relu(-x)
  PINNACE_TRY(n.add(Op::MUL, {turned, n.number(-alpha, x), n.scalar(0)}, negative));
  return n.add(Op::ADD, {positive, negative, n.scalar(0)}, y);
}

}  // namespace pinnace::nnapi_client
