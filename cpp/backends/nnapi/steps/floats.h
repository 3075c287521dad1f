// Quantised tensors as floats and back, for operators that NNAPI has on floats only: within 1 of the quantised result.
#pragma once

#include "backends/nnapi/lowering.h"

namespace pinnace::nnapi_client {

bool quantized_type(nnapi::OperandCode type);

/// x itself if it is no quantised tensor, else DEQUANTIZE of it.
Result<OperandId> as_floats(NodeLowering& n, OperandId x);
/// What to compute in place of y: y itself, or where y is quantised floats of its dims, which store_floats() then
/// rounds (QUANTIZE, feature level 3; CAST where y is of float16).
OperandId floats_for(NodeLowering& n, OperandId y);
Status store_floats(NodeLowering& n, OperandId from, OperandId y);
/// x with the quantisation of y: x itself where they agree, else by way of floats.
Status requantize_into(NodeLowering& n, OperandId x, OperandId y);

/// The same in float32 where x or y is of float16, whose squares overflow from 256 on and whose small numbers vanish
/// (CAST, feature level 3, as float16 itself).
Result<OperandId> as_float32(NodeLowering& n, OperandId x);
OperandId float32_for(NodeLowering& n, OperandId y);

/// A chain of float operations on operands of one shape. After a failure it adds nothing more; `status` keeps the
/// first.
struct Chain {
  NodeLowering& n;
  OperandId like;
  Status status = {};

  OperandId op(Op code, std::vector<OperandId> inputs, OperandId to = kNoOperand);
  OperandId num(double v) { return n.number(v, like); }
  OperandId mul(OperandId a, OperandId b, OperandId to = kNoOperand) { return op(Op::MUL, {a, b, n.scalar(0)}, to); }
  OperandId add(OperandId a, OperandId b, OperandId to = kNoOperand) { return op(Op::ADD, {a, b, n.scalar(0)}, to); }
  OperandId sub(OperandId a, OperandId b, OperandId to = kNoOperand);
  OperandId div(OperandId a, OperandId b, OperandId to = kNoOperand) { return op(Op::DIV, {a, b, n.scalar(0)}, to); }
  OperandId neg(OperandId a, OperandId to = kNoOperand) { return mul(a, num(-1), to); }
  OperandId relu(OperandId a) { return op(Op::RELU, {a}); }
  /// |a|: ABS from feature level 3 on, else relu of both signs, exact.
  OperandId abs(OperandId a, OperandId to = kNoOperand);
};

}  // namespace pinnace::nnapi_client
