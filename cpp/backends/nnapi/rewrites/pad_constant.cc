// Padding with a constant: PAD (feature level 2) for 0, PAD_V2 (feature level 3) for others. Feature level 2, floats:
// the constant is taken off x, zeros are padded, and it is added again: two roundings, within 2^-23 (|x| + |constant|),
// and constants beyond kMostTakenOff are refused.
#include <cmath>

#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/floats.h"

namespace pinnace::nnapi_client {

Status pad_constant(NodeLowering& n, OperandId x, std::span<const int32_t> pads, double value, OperandId y) {
  const auto rank = static_cast<uint32_t>(pads.size() / 2);
  const OperandId amounts = n.ints(pads, {rank, 2});
  const nnapi::Operand o = n.operand(x);
  if (quantized_type(o.type)) {
    const double q = std::nearbyint(value / o.scale) + o.zero_point;
    const bool is_zero = q == o.zero_point && (o.zero_point == 0 || n.feature_level() >= 3);
    if (is_zero) return n.add(Op::PAD, {x, amounts}, y);
    return n.add(Op::PAD_V2, {x, amounts, n.scalar(static_cast<int32_t>(q))}, y);
  }
  if (value == 0) return n.add(Op::PAD, {x, amounts}, y);
  if (n.feature_level() >= 3) {
    const bool is_f16 = o.type == nnapi::OperandCode::kTensorFloat16;
    const auto code = is_f16 ? nnapi::OperandCode::kFloat16 : nnapi::OperandCode::kFloat32;
    return n.add(Op::PAD_V2, {x, amounts, n.lowering().add_scalar(static_cast<float>(value), code)}, y);
  }
  if (!(std::fabs(value) <= kMostTakenOff)) {
    return n.refuse(Rule::kFeatureLevel, str_cat("a constant of ", value));
  }
  n.rewritten("pad with a constant by adding it");
  Chain c{n, x};
  const OperandId less = c.add(x, c.num(-value));
  const OperandId wide = n.temp(y);
  c.op(Op::PAD, {less, amounts}, wide);
  c.add(wide, c.num(value), y);
  return c.status;
}

}  // namespace pinnace::nnapi_client
