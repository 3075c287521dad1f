// Names, parameters and formulas of fused activations.
#include "ops/activation.h"

#include <algorithm>
#include <cmath>

namespace pinnace {
namespace {
struct Row {
  std::string_view name;
  int params;
};
constexpr Row kRows[] = {{"", 0},           {"relu", 0},         {"clip", 2},     {"leaky_relu", 1},
                         {"hard_swish", 0}, {"hard_sigmoid", 2}, {"sigmoid", 0},  {"silu", 0},
                         {"tanh", 0},       {"gelu", 0},         {"gelu_tanh", 0}};

// Written once for both precisions: F is double or float. Comparisons are arranged so that NaN falls through.
template <class F>
F apply(ActivationKind kind, F a, F b, F x) {
  switch (kind) {
    case ActivationKind::kNone:
      return x;
    case ActivationKind::kRelu:
      return x < 0 || x == 0 ? F(0) : x;
    case ActivationKind::kClip:
      x = x < a ? a : x;
      return x > b ? b : x;
    case ActivationKind::kLeakyRelu:
      return x < 0 ? a * x : x;
    case ActivationKind::kHardSwish: {
      const F gate = x / 6 + F(0.5);
      return x * (gate < 0 ? F(0) : gate > 1 ? F(1) : gate);
    }
    case ActivationKind::kHardSigmoid: {
      const F gate = a * x + b;
      return gate < 0 ? F(0) : gate > 1 ? F(1) : gate;
    }
    case ActivationKind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case ActivationKind::kSilu:
      return x / (1 + std::exp(-x));
    case ActivationKind::kTanh:
      return std::tanh(x);
    case ActivationKind::kGelu:
      return x / 2 * std::erfc(x * F(-0.70710678118654752));  // erfc keeps the digits of the left tail
    case ActivationKind::kGeluTanh:
      return x / 2 * (1 + std::tanh(F(0.79788456080286536) * (x + F(0.044715) * x * x * x)));
  }
  return x;
}
}  // namespace

std::string_view activation_name(ActivationKind kind) {
  return kRows[static_cast<size_t>(kind)].name;
}

std::optional<ActivationKind> activation_from_name(std::string_view name) {
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if (kRows[i].name == name) return static_cast<ActivationKind>(i);
  }
  return std::nullopt;
}

int activation_param_count(ActivationKind kind) {
  return kRows[static_cast<size_t>(kind)].params;
}

double Activation::operator()(double x) const {
  return apply<double>(kind, a, b, x);
}

float Activation::apply_f32(float x) const {
  return apply<float>(kind, static_cast<float>(a), static_cast<float>(b), x);
}

Result<Activation> parse_activation(const NodeView& node) {
  const std::string_view name = node.attr_string("activation");
  const auto kind = activation_from_name(name);
  if (!kind)
    return node.error("activation '", name,
                      "' is not one of relu, clip, leaky_relu, hard_swish, hard_sigmoid, "
                      "sigmoid, silu, tanh, gelu, gelu_tanh");
  const auto params = node.attr_floats("activation_params");
  const auto wanted = static_cast<size_t>(activation_param_count(*kind));
  if (params.size() != wanted) {
    return node.error("activation '", name, "' takes ", wanted, " activation_params, has ", params.size());
  }
  for (double p : params) {
    if (p != p) return node.error("activation_params has a NaN");
  }
  return Activation{*kind, wanted > 0 ? params[0] : 0, wanted > 1 ? params[1] : 0};
}

Status check_activation(const NodeView& node, const TensorType& y) {
  PINNACE_ASSIGN(const Activation activation, parse_activation(node));
  if (activation.none() || (kFloats >> static_cast<int>(y.dtype) & 1)) return {};
  if (y.quantized() && activation.is_clamp()) return {};
  return node.error("activation '", activation_name(activation.kind), "' does not apply to ", y,
                    y.quantized() ? "; quantised types take relu and clip" : "; plain integers take none");
}

IntRange activation_range(const Activation& activation, const TensorType& y) {
  IntRange range = int_range(y.dtype);
  const ScaleZero p = scale_zero(y);
  const IntRange all = range;
  if (activation.kind == ActivationKind::kRelu) range.min = quantize(0.0f, p, all);
  if (activation.kind == ActivationKind::kClip) {
    range.min = quantize(static_cast<float>(activation.a), p, all);
    range.max = quantize(static_cast<float>(activation.b), p, all);
  }
  return range;
}

}  // namespace pinnace
