// elu: ELU from feature level 4 on. Feature level 3: relu(x) + alpha * (exp(min(x, 0)) - 1), within 2^-23 alpha. Below
// there is no exp.
#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/floats.h"

namespace pinnace::nnapi_client {

Status elu(NodeLowering& n, double alpha, OperandId x, OperandId y) {
  if (n.feature_level() >= 4) {
    const bool is_f16 = n.operand(x).type == nnapi::OperandCode::kTensorFloat16;
    const auto code = is_f16 ? nnapi::OperandCode::kFloat16 : nnapi::OperandCode::kFloat32;
    return n.add(Op::ELU, {x, n.lowering().add_scalar(static_cast<float>(alpha), code)}, y);
  }
  n.rewritten("elu by exp");
  Chain c{n, x};
  const OperandId down = c.op(Op::EXP, {c.op(Op::MINIMUM, {x, c.num(0)})});
  c.add(c.relu(x), c.mul(c.add(down, c.num(-1)), c.num(alpha)), y);
  return c.status;
}

}  // namespace pinnace::nnapi_client
