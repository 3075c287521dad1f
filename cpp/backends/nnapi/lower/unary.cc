// Unary functions: what NNAPI has, and what is composed of it. Those of unary.inc that are not here run elsewhere.
#include <cmath>
#include <functional>

#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/floats.h"

namespace pinnace::nnapi_client {
namespace {

using enum nnapi::OperandCode;

/// x and y of a function of one operand, in the layout that x stands in.
struct Ends {
  OperandId x, y;
};
Result<Ends> ends(NodeLowering& n) {
  const Layout layout = n.elementwise_layout();
  PINNACE_ASSIGN(const OperandId x, n.in(0, layout));
  PINNACE_ASSIGN(const OperandId y, n.out(0, layout));
  return Ends{x, y};
}

bool same_quantization(const TensorType& a, const TensorType& b) {
  return a.quantized() == b.quantized() && (!a.quantized() || *a.quantization == *b.quantization);
}

/// relu(x) + log(1 + exp(-|x|)).
OperandId softplus(Chain& c, OperandId x, OperandId y = kNoOperand) {
  const OperandId rest = c.op(Op::LOG, {c.add(c.op(Op::EXP, {c.neg(c.abs(x))}), c.num(1))});
  return c.add(c.relu(x), rest, y);
}

}  // namespace

Status add_unary(NodeLowering& n, const Unary& f, OperandId x, OperandId y) {
  const int32_t none = 0;
  const auto type = n.operand(x).type;
  const bool floats = type == kTensorFloat32 || type == kTensorFloat16, words = type == kTensorInt32;
  Chain c{n, x};
  if (words && f.kind == UnaryKind::kAbs) return n.add(Op::ABS, {x}, y);
  if (!floats && !(words && f.kind == UnaryKind::kNeg)) return clamp_quantized(n, f, x, y);  // nothing else is allowed
  switch (f.kind) {
    case UnaryKind::kNone:
      return n.add(Op::ADD, {x, n.number(0, x), n.scalar(none)}, y);
    case UnaryKind::kRelu:
      return n.add(Op::RELU, {x}, y);
    case UnaryKind::kClip:
      return clip_float(n, f.p, f.q, x, y);
    case UnaryKind::kLeakyRelu:
      return leaky_relu(n, f.p, x, y);
    case UnaryKind::kHardSwish:
      return hard_swish(n, x, y);
    case UnaryKind::kHardSigmoid: {
      const OperandId scaled = n.temp(x), moved = n.temp(x);
      PINNACE_TRY(n.add(Op::MUL, {x, n.number(f.p, x), n.scalar(none)}, scaled));
      PINNACE_TRY(n.add(Op::ADD, {scaled, n.number(f.q, x), n.scalar(1)}, moved));  // and relu
      return n.add(Op::RELU1, {moved}, y);
    }
    case UnaryKind::kSigmoid:
      return n.add(Op::LOGISTIC, {x}, y);
    case UnaryKind::kSilu: {
      const OperandId gate = n.temp(x);
      PINNACE_TRY(n.add(Op::LOGISTIC, {x}, gate));
      return n.add(Op::MUL, {x, gate, n.scalar(none)}, y);
    }
    case UnaryKind::kTanh:
      return n.add(Op::TANH, {x}, y);
    case UnaryKind::kGelu:
      return gelu(n, x, y);
    case UnaryKind::kGeluTanh:
      return gelu_tanh(n, x, y);
    case UnaryKind::kAbs:
      c.abs(x, y);
      return c.status;
    case UnaryKind::kNeg:
      if (n.feature_level() >= 3) return n.add(Op::NEG, {x}, y);
      c.neg(x, y);
      return c.status;
    case UnaryKind::kFloor:
      return n.add(Op::FLOOR, {x}, y);
    case UnaryKind::kCeil:  // -floor(-x)
      c.neg(c.op(Op::FLOOR, {c.neg(x)}), y);
      return c.status;
    case UnaryKind::kExp:
      return n.add(Op::EXP, {x}, y);
    case UnaryKind::kLog:
      return n.add(Op::LOG, {x}, y);
    case UnaryKind::kSqrt:
      return n.add(Op::SQRT, {x}, y);
    case UnaryKind::kSin:
      return n.add(Op::SIN, {x}, y);
    case UnaryKind::kReciprocal:
      return n.add(Op::DIV, {n.number(1, x), x, n.scalar(none)}, y);
    case UnaryKind::kErf:
      return erf(n, x, y);
    case UnaryKind::kElu:
      return elu(n, f.p, x, y);
    case UnaryKind::kCelu: {  // relu(x) + p * (exp(min(x, 0) / p) - 1): elu of x / p, times p
      if (!(f.p > 0)) return n.refuse(Rule::kAttribute, str_cat("alpha ", f.p));
      const OperandId inner = n.temp(x);
      const OperandId scaled = c.mul(x, c.num(1 / f.p));
      PINNACE_TRY(c.status);
      PINNACE_TRY(elu(n, 1, scaled, inner));
      c.mul(inner, c.num(f.p), y);
      return c.status;
    }
    case UnaryKind::kSelu: {
      const OperandId inner = n.temp(x);
      PINNACE_TRY(elu(n, f.p, x, inner));
      c.mul(inner, c.num(f.q), y);
      return c.status;
    }
    case UnaryKind::kSoftplus:
      softplus(c, x, y);
      return c.status;
    case UnaryKind::kMish:
      c.mul(x, c.op(Op::TANH, {softplus(c, x)}), y);
      return c.status;
    case UnaryKind::kSoftsign:
      c.div(x, c.add(c.abs(x), c.num(1)), y);
      return c.status;
    default:
      return n.refuse(Rule::kAttribute, std::string(unary_name(f.kind)));
  }
}

/// A function of floats; of quantised types by way of floats.
Status lower_function(NodeLowering& n, const std::function<Status(OperandId x, OperandId y)>& add) {
  PINNACE_ASSIGN(const Ends e, ends(n));
  PINNACE_ASSIGN(const OperandId x, as_floats(n, e.x));
  const OperandId y = floats_for(n, e.y);
  PINNACE_TRY(add(x, y));
  return store_floats(n, y, e.y);
}
Status lower_unary(NodeLowering& n) {
  const auto f = unary_of(n.view());
  if (!f) return n.refuse(Rule::kConstant, "min or max");
  return lower_function(n, [&](OperandId x, OperandId y) { return add_unary(n, *f, x, y); });
}

/// relu and clip of quantised types: the same parameters on both sides, then a clamp.
Status lower_relu(NodeLowering& n) {
  if (!same_quantization(n.in_type(0), n.out_type())) return lower_unary(n);
  PINNACE_ASSIGN(const Ends e, ends(n));
  return n.add(Op::RELU, {e.x}, e.y);
}

Status lower_clip(NodeLowering& n) {
  Unary a{UnaryKind::kClip, -INFINITY, INFINITY};
  for (int i : {1, 2}) {
    if (!n.has(i)) continue;
    const auto bound = n.view().input_floats(i);
    if (!bound) return n.refuse(Rule::kConstant, i == 1 ? "min" : "max");
    (i == 1 ? a.p : a.q) = bound->at(0);
  }
  if (!same_quantization(n.in_type(0), n.out_type())) {
    return lower_function(n, [&](OperandId x, OperandId y) { return add_unary(n, a, x, y); });
  }
  PINNACE_ASSIGN(const Ends e, ends(n));
  if (a.p == 0 && a.q == 6) return n.add(Op::RELU6, {e.x}, e.y);
  if (a.p == -1 && a.q == 1) return n.add(Op::RELU1, {e.x}, e.y);
  return add_unary(n, a, e.x, e.y);
}

/// A fixed scale of the result, 1 / 256 or 1 / 128, is NNAPI's rule for quantised types.
Status lower_with_scale(NodeLowering& n, Op op, float scale, int32_t zero) {
  const TensorType& y = n.out_type();
  if (y.quantized()) {
    const int32_t offset = y.dtype == DType::kI8 ? 128 : 0;
    if (y.quantization->scales[0] != scale || y.quantization->zero_points[0] + offset != zero)
      return lower_function(n, [&](OperandId x, OperandId to) { return n.add(op, {x}, to); });
  }
  PINNACE_ASSIGN(const Ends e, ends(n));
  return n.add(op, {e.x}, e.y);
}
Status lower_sigmoid(NodeLowering& n) {
  return lower_with_scale(n, Op::LOGISTIC, 1.0f / 256, 0);
}
Status lower_tanh(NodeLowering& n) {
  return lower_with_scale(n, Op::TANH, 1.0f / 128, 128);
}

/// Quantised: HARD_SWISH has scales of its own.
Status lower_hard_swish(NodeLowering& n) {
  if (!n.out_type().quantized() || n.feature_level() < 4) return lower_unary(n);
  PINNACE_ASSIGN(const Ends e, ends(n));
  return n.add(Op::HARD_SWISH, {e.x}, e.y);
}

}  // namespace pinnace::nnapi_client
