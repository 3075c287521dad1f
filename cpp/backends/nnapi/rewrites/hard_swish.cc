// hard_swish: HARD_SWISH from feature level 4 on. Below: x * (relu6(x + 3) / 6), three roundings more: within 2^-22
// |y|, or 2^-22 |x| where x + 3 cancels.
#include "backends/nnapi/rewrites/rewrites.h"

namespace pinnace::nnapi_client {

Status hard_swish(NodeLowering& n, OperandId x, OperandId y) {
  if (n.feature_level() >= 4) return n.add(Op::HARD_SWISH, {x}, y);
  n.rewritten("hard_swish by add, relu6, mul");
  const OperandId gate = n.temp(x), part = n.temp(x);
  PINNACE_TRY(n.add(Op::ADD, {x, n.number(3, x), n.scalar(3)}, gate));
  PINNACE_TRY(n.add(Op::MUL, {gate, n.number(1.0 / 6, x), n.scalar(0)}, part));
  return n.add(Op::MUL, {x, part, n.scalar(0)}, y);
}

}  // namespace pinnace::nnapi_client
