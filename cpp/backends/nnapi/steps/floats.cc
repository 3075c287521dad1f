// Conversions between quantised tensors and floats; chains of float operations.
#include "backends/nnapi/steps/floats.h"

#include "backends/nnapi/steps/shape.h"

namespace pinnace::nnapi_client {

using enum nnapi::OperandCode;

bool quantized_type(nnapi::OperandCode type) {
  return type == kTensorQuant8Asymm || type == kTensorQuant8AsymmSigned;
}

Result<OperandId> as_floats(NodeLowering& n, OperandId x) {
  if (!quantized_type(n.operand(x).type)) return x;
  const OperandId y = n.temp(OperandSpec{kTensorFloat32, n.operand(x).dims});
  PINNACE_TRY(n.add(Op::DEQUANTIZE, {x}, y));
  return y;
}

OperandId floats_for(NodeLowering& n, OperandId y) {
  return quantized_type(n.operand(y).type) ? n.temp(OperandSpec{kTensorFloat32, n.operand(y).dims}) : y;
}

Result<OperandId> as_float32(NodeLowering& n, OperandId x) {
  if (n.operand(x).type != kTensorFloat16) return as_floats(n, x);
  const OperandId y = n.temp(OperandSpec{kTensorFloat32, n.operand(x).dims});
  PINNACE_TRY(n.add(Op::CAST, {x}, y));
  return y;
}

OperandId float32_for(NodeLowering& n, OperandId y) {
  if (n.operand(y).type != kTensorFloat16) return floats_for(n, y);
  return n.temp(OperandSpec{kTensorFloat32, n.operand(y).dims});
}

Status store_floats(NodeLowering& n, OperandId from, OperandId y) {
  if (from == y) return {};
  if (n.operand(y).type == kTensorFloat16) {
    n.rewritten("in float32");
    return n.add(Op::CAST, {from}, y);
  }
  n.rewritten("in float32, between DEQUANTIZE and QUANTIZE");
  return n.add(Op::QUANTIZE, {from}, y);
}

Status requantize_into(NodeLowering& n, OperandId x, OperandId y) {
  const nnapi::Operand &from = n.operand(x), &to = n.operand(y);
  if (from.scale == to.scale && from.zero_point == to.zero_point) return reshape_into(n, x, y);
  PINNACE_ASSIGN(const OperandId floats, as_floats(n, x));
  return n.add(Op::QUANTIZE, {floats}, y);
}

OperandId Chain::op(Op code, std::vector<OperandId> inputs, OperandId to) {
  if (to == kNoOperand) to = n.temp(like);
  if (status.ok()) status = n.add(code, std::move(inputs), to);
  return to;
}

OperandId Chain::sub(OperandId a, OperandId b, OperandId to) {
  if (n.feature_level() >= 2) return op(Op::SUB, {a, b, n.scalar(0)}, to);
  const OperandId turned = n.temp(b);
  op(Op::MUL, {b, num(-1), n.scalar(0)}, turned);
  return add(a, turned, to);
}

OperandId Chain::abs(OperandId a, OperandId to) {
  if (n.feature_level() >= 3) return op(Op::ABS, {a}, to);
  return add(relu(a), relu(neg(a)), to);
}

}  // namespace pinnace::nnapi_client
