// Activations and other functions of one float operand: what NNAPI has, and what is composed of it.
#include <cmath>
#include <functional>

#include "backends/nnapi/lower/floats.h"
#include "backends/nnapi/rewrites/rewrites.h"

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

}  // namespace

Status add_activation(NodeLowering& n, const Activation& a, OperandId x, OperandId y) {
  const int32_t none = 0;
  const auto type = n.operand(x).type;
  if (type != kTensorFloat32 && type != kTensorFloat16) {  // only clamps are allowed there
    return clamp_quantized(n, a, x, y);
  }
  switch (a.kind) {
    case ActivationKind::kNone:
      return n.add(Op::ADD, {x, n.number(0, x), n.scalar(none)}, y);
    case ActivationKind::kRelu:
      return n.add(Op::RELU, {x}, y);
    case ActivationKind::kClip:
      return clip_float(n, a.a, a.b, x, y);
    case ActivationKind::kLeakyRelu:
      return leaky_relu(n, a.a, x, y);
    case ActivationKind::kHardSwish:
      return hard_swish(n, x, y);
    case ActivationKind::kHardSigmoid: {
      const OperandId scaled = n.temp(x), moved = n.temp(x);
      PINNACE_TRY(n.add(Op::MUL, {x, n.number(a.a, x), n.scalar(none)}, scaled));
      PINNACE_TRY(n.add(Op::ADD, {scaled, n.number(a.b, x), n.scalar(1)}, moved));  // and relu
      return n.add(Op::RELU1, {moved}, y);
    }
    case ActivationKind::kSigmoid:
      return n.add(Op::LOGISTIC, {x}, y);
    case ActivationKind::kSilu: {
      const OperandId gate = n.temp(x);
      PINNACE_TRY(n.add(Op::LOGISTIC, {x}, gate));
      return n.add(Op::MUL, {x, gate, n.scalar(none)}, y);
    }
    case ActivationKind::kTanh:
      return n.add(Op::TANH, {x}, y);
    case ActivationKind::kGelu:
      return gelu(n, x, y);
    case ActivationKind::kGeluTanh:
      return gelu_tanh(n, x, y);
  }
  return n.refuse(Rule::kAttribute, std::string(activation_name(a.kind)));
}

/// A function of floats; of quantised types by way of floats.
Status lower_function(NodeLowering& n, const std::function<Status(OperandId x, OperandId y)>& add) {
  PINNACE_ASSIGN(const Ends e, ends(n));
  PINNACE_ASSIGN(const OperandId x, as_floats(n, e.x));
  const OperandId y = floats_for(n, e.y);
  PINNACE_TRY(add(x, y));
  return store_floats(n, y, e.y);
}
Status lower_activation(NodeLowering& n, const Activation& a) {
  return lower_function(n, [&](OperandId x, OperandId y) { return add_activation(n, a, x, y); });
}

/// relu and clip of quantised types: the same parameters on both sides, then a clamp.
Status lower_relu(NodeLowering& n) {
  if (!same_quantization(n.in_type(0), n.out_type())) return lower_activation(n, {ActivationKind::kRelu});
  PINNACE_ASSIGN(const Ends e, ends(n));
  return n.add(Op::RELU, {e.x}, e.y);
}

Status lower_clip(NodeLowering& n) {
  Activation a{ActivationKind::kClip, -INFINITY, INFINITY};
  for (int i : {1, 2}) {
    if (!n.has(i)) continue;
    const auto bound = n.view().input_floats(i);
    if (!bound) return n.refuse(Rule::kConstant, i == 1 ? "min" : "max");
    (i == 1 ? a.a : a.b) = bound->at(0);
  }
  if (!same_quantization(n.in_type(0), n.out_type())) return lower_activation(n, a);
  PINNACE_ASSIGN(const Ends e, ends(n));
  if (a.a == 0 && a.b == 6) return n.add(Op::RELU6, {e.x}, e.y);
  if (a.a == -1 && a.b == 1) return n.add(Op::RELU1, {e.x}, e.y);
  return add_activation(n, a, e.x, e.y);
}

/// A fixed scale of the result, 1 / 256 or 1 / 128, is NNAPI's rule for quantised types.
Status lower_curve(NodeLowering& n, Op op, float scale, int32_t zero) {
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
  return lower_curve(n, Op::LOGISTIC, 1.0f / 256, 0);
}
Status lower_tanh(NodeLowering& n) {
  return lower_curve(n, Op::TANH, 1.0f / 128, 128);
}

Status lower_silu(NodeLowering& n) {
  return lower_activation(n, {ActivationKind::kSilu});
}
Status lower_leaky_relu(NodeLowering& n) {
  return lower_activation(n, {ActivationKind::kLeakyRelu, n.view().attr_float("alpha")});
}
Status lower_hard_sigmoid(NodeLowering& n) {
  return lower_activation(n, {ActivationKind::kHardSigmoid, n.view().attr_float("alpha"), n.view().attr_float("beta")});
}
Status lower_gelu(NodeLowering& n) {
  const bool tanh = n.view().attr_string("approximate") == "tanh";
  return lower_activation(n, {tanh ? ActivationKind::kGeluTanh : ActivationKind::kGelu});
}
/// Quantised: HARD_SWISH has scales of its own.
Status lower_hard_swish(NodeLowering& n) {
  if (!n.out_type().quantized() || n.level() < 4) return lower_activation(n, {ActivationKind::kHardSwish});
  PINNACE_ASSIGN(const Ends e, ends(n));
  return n.add(Op::HARD_SWISH, {e.x}, e.y);
}

Status lower_abs(NodeLowering& n) {
  return lower_function(n, [&](OperandId x, OperandId y) {
    if (n.operand(x).type == kTensorInt32) return n.add(Op::ABS, {x}, y);
    Chain c{n, x};
    c.abs(x, y);
    return c.status;
  });
}
Status lower_neg(NodeLowering& n) {
  return lower_function(n, [&](OperandId x, OperandId y) {
    if (n.level() >= 3) return n.add(Op::NEG, {x}, y);
    Chain c{n, x};
    c.neg(x, y);
    return c.status;
  });
}
Status lower_floor(NodeLowering& n) {
  return lower_function(n, [&](OperandId x, OperandId y) { return n.add(Op::FLOOR, {x}, y); });
}
/// -floor(-x).
Status lower_ceil(NodeLowering& n) {
  return lower_function(n, [&](OperandId x, OperandId y) {
    Chain c{n, x};
    c.neg(c.op(Op::FLOOR, {c.neg(x)}), y);
    return c.status;
  });
}
Status lower_exp(NodeLowering& n) {
  return lower_function(n, [&](OperandId x, OperandId y) { return n.add(Op::EXP, {x}, y); });
}
Status lower_log(NodeLowering& n) {
  return lower_function(n, [&](OperandId x, OperandId y) { return n.add(Op::LOG, {x}, y); });
}
Status lower_sqrt(NodeLowering& n) {
  return lower_function(n, [&](OperandId x, OperandId y) { return n.add(Op::SQRT, {x}, y); });
}
Status lower_sin(NodeLowering& n) {
  return lower_function(n, [&](OperandId x, OperandId y) { return n.add(Op::SIN, {x}, y); });
}
Status lower_reciprocal(NodeLowering& n) {
  return lower_function(n,
                        [&](OperandId x, OperandId y) { return n.add(Op::DIV, {n.number(1, x), x, n.scalar(0)}, y); });
}
Status lower_erf(NodeLowering& n) {
  return lower_function(n, [&](OperandId x, OperandId y) { return erf(n, x, y); });
}
Status lower_elu(NodeLowering& n) {
  return lower_function(n, [&](OperandId x, OperandId y) { return elu(n, n.view().attr_float("alpha"), x, y); });
}
/// relu(x) + alpha * (exp(min(x, 0) / alpha) - 1): elu of x / alpha, times alpha.
Status lower_celu(NodeLowering& n) {
  const double alpha = n.view().attr_float("alpha");
  if (!(alpha > 0)) return n.refuse(Rule::kAttribute, str_cat("alpha ", alpha));
  return lower_function(n, [&](OperandId x, OperandId y) {
    Chain c{n, x};
    const OperandId inner = n.temp(x);
    const OperandId scaled = c.mul(x, c.num(1 / alpha));
    PINNACE_TRY(c.status);
    PINNACE_TRY(elu(n, 1, scaled, inner));
    c.mul(inner, c.num(alpha), y);
    return c.status;
  });
}
Status lower_selu(NodeLowering& n) {
  return lower_function(n, [&](OperandId x, OperandId y) {
    const OperandId inner = n.temp(x);
    PINNACE_TRY(elu(n, n.view().attr_float("alpha"), x, inner));
    Chain c{n, x};
    c.mul(inner, c.num(n.view().attr_float("gamma")), y);
    return c.status;
  });
}
namespace {
/// relu(x) + log(1 + exp(-|x|)).
OperandId softplus(Chain& c, OperandId x, OperandId y = kNoOperand) {
  const OperandId rest = c.op(Op::LOG, {c.add(c.op(Op::EXP, {c.neg(c.abs(x))}), c.num(1))});
  return c.add(c.relu(x), rest, y);
}
}  // namespace
Status lower_softplus(NodeLowering& n) {
  return lower_function(n, [&](OperandId x, OperandId y) {
    Chain c{n, x};
    softplus(c, x, y);
    return c.status;
  });
}
Status lower_mish(NodeLowering& n) {
  return lower_function(n, [&](OperandId x, OperandId y) {
    Chain c{n, x};
    c.mul(x, c.op(Op::TANH, {softplus(c, x)}), y);
    return c.status;
  });
}
Status lower_softsign(NodeLowering& n) {
  return lower_function(n, [&](OperandId x, OperandId y) {
    Chain c{n, x};
    c.div(x, c.add(c.abs(x), c.num(1)), y);
    return c.status;
  });
}

}  // namespace pinnace::nnapi_client
