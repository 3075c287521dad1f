// Functions of one operand, element by element.
#include "nnapi/mapping.h"

namespace pinnace::nnapi {
namespace {

Status map_unary(Call& call, std::string_view op) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(ValueId y, call.pointwise(op, {x}, {}, call.declared()));
  return call.finish(0, y);
}

/// A function whose quantised output has a fixed scale and zero point.
Status map_fixed(Call& call, std::string_view op, float scale, int32_t unsigned_zero) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  QuantizationPtr q;
  if (call.quantized(x)) q = per_tensor(scale, unsigned_zero - (call.type(x).dtype == DType::kI8 ? 128 : 0));
  PINNACE_ASSIGN(ValueId y, call.pointwise(op, {x}, {}, q));
  return call.finish(0, y);
}

}  // namespace

Status map_relu(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(ValueId y, call.activate(x, call.op() == Op::RELU ? 1 : call.op() == Op::RELU1 ? 2 : 3));
  return call.finish(0, y);
}

Status map_logistic(Call& call) {
  return map_fixed(call, "sigmoid", 1.0f / 256, 0);
}
Status map_tanh(Call& call) {
  return map_fixed(call, "tanh", 1.0f / 128, 128);
}

Status map_abs(Call& call) {
  return map_unary(call, "abs");
}
Status map_neg(Call& call) {
  return map_unary(call, "neg");
}
Status map_floor(Call& call) {
  return map_unary(call, "floor");
}
Status map_exp(Call& call) {
  return map_unary(call, "exp");
}
Status map_log(Call& call) {
  return map_unary(call, "log");
}
Status map_sin(Call& call) {
  return map_unary(call, "sin");
}
Status map_sqrt(Call& call) {
  return map_unary(call, "sqrt");
}
Status map_hard_swish(Call& call) {
  return map_unary(call, "hard_swish");
}
Status map_logical_not(Call& call) {
  return map_unary(call, "not");
}

Status map_elu(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(double alpha, call.real(1));
  PINNACE_ASSIGN(ValueId y, call.pointwise("elu", {x}, {{"alpha", alpha}}));
  return call.finish(0, y);
}

// A power rather than sqrt and reciprocal: it is rounded once. What is quantised passes through float32, for 1 /
// sqrt(0) is the highest number.
Status map_rsqrt(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  const bool quantized = call.quantized(x);
  const DType dtype = call.type(x).dtype;
  if (quantized) {
    PINNACE_ASSIGN(x, call.dequantize(x));
  }
  PINNACE_ASSIGN(ValueId exponent, call.constant_scalar(call.type(x).dtype, -0.5));
  PINNACE_ASSIGN(ValueId y, call.emit("pow", {x, exponent}));
  if (quantized) {
    PINNACE_ASSIGN(y, call.requantize(y, dtype, call.declared()));
  }
  return call.finish(0, y);
}

}  // namespace pinnace::nnapi
