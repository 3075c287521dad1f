// Arithmetic with a fused activation, and functions of one operand.
#include "nnapi/lowering.h"

namespace pinnace::nnapi {
namespace {

/// Two operands that broadcast, then the activation of input 2.
Status lower_arithmetic(Call& call, std::string_view op) {
  PINNACE_ASSIGN(ValueId a, call.in(0));
  PINNACE_ASSIGN(ValueId b, call.in(1));
  PINNACE_ASSIGN(int64_t code, call.integer(2));
  if (code != 0 && call.type(a).dtype == DType::kI32) return call.error("activation ", code, " on integers");
  PINNACE_ASSIGN(ValueId y, call.emit(op, {a, b}, {}, call.declared()));
  PINNACE_ASSIGN(y, call.activate(y, code));
  return call.finish(0, y);
}

/// A function whose quantised output has a fixed scale and zero point.
Status lower_fixed(Call& call, std::string_view op, float scale, int32_t unsigned_zero) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  QuantizationPtr q;
  if (call.quantized(x)) q = per_tensor(scale, unsigned_zero - (call.type(x).dtype == DType::kI8 ? 128 : 0));
  PINNACE_ASSIGN(ValueId y, call.emit(op, {x}, {}, std::move(q)));
  return call.finish(0, y);
}

}  // namespace

Status lower_add(Call& call) {
  PINNACE_ASSIGN(ValueId a, call.in(0));
  PINNACE_ASSIGN(ValueId b, call.in(1));
  PINNACE_ASSIGN(int64_t code, call.integer(2));
  if (code != 0 && call.type(a).dtype == DType::kI32) return call.error("activation ", code, " on integers");
  PINNACE_ASSIGN(Attrs attrs, call.activation(code));
  PINNACE_ASSIGN(ValueId y, call.emit("add", {a, b}, std::move(attrs), call.declared()));
  return call.finish(0, y);
}

Status lower_mul(Call& call) {
  return lower_arithmetic(call, "mul");
}

Status lower_relu(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(ValueId y, call.activate(x, call.op() == Op::RELU ? 1 : call.op() == Op::RELU1 ? 2 : 3));
  return call.finish(0, y);
}

Status lower_logistic(Call& call) {
  return lower_fixed(call, "sigmoid", 1.0f / 256, 0);
}
Status lower_tanh(Call& call) {
  return lower_fixed(call, "tanh", 1.0f / 128, 128);
}

}  // namespace pinnace::nnapi
