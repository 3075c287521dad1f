// The activation that conv, conv_transpose, gemm, mat_mul and add may carry, so that a kernel applies it to a result
// that is still in a register. Parsed once per node; applied by reference code in double and by kernels in float.
#pragma once

#include <optional>
#include <string_view>

#include "ops/element.h"

namespace pinnace {

enum class ActivationKind : uint8_t {
  kNone,         ///< ""             y = x
  kRelu,         ///< "relu"         max(x, 0); -0 becomes 0
  kClip,         ///< "clip"         [min, max]: min(max(x, min), max)
  kLeakyRelu,    ///< "leaky_relu"   [alpha]: x where x >= 0, else alpha * x
  kHardSwish,    ///< "hard_swish"   x * clip(x / 6 + 0.5, 0, 1)
  kHardSigmoid,  ///< "hard_sigmoid" [alpha, beta]: clip(alpha * x + beta, 0, 1)
  kSigmoid,      ///< "sigmoid"      1 / (1 + exp(-x))
  kSilu,         ///< "silu"         x * sigmoid(x)
  kTanh,         ///< "tanh"
  kGelu,         ///< "gelu"         x / 2 * (1 + erf(x / sqrt 2))
  kGeluTanh,     ///< "gelu_tanh"    x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
};

/// The name in attributes; "" for kNone.
std::string_view activation_name(ActivationKind kind);
std::optional<ActivationKind> activation_from_name(std::string_view name);
/// How many numbers the attribute activation_params holds for this kind: 0, 1 or 2.
int activation_param_count(ActivationKind kind);

/// What one node applies to its results. NaN stays NaN for every kind.
struct Activation {
  ActivationKind kind = ActivationKind::kNone;
  double a = 0;  ///< min, or alpha
  double b = 0;  ///< max, or beta

  bool none() const { return kind == ActivationKind::kNone; }
  /// True where quantised types allow it: it is then a clamp of the stored integer, see activation_range().
  bool is_clamp() const {
    return kind == ActivationKind::kNone || kind == ActivationKind::kRelu || kind == ActivationKind::kClip;
  }
  /// In double, for reference code.
  double operator()(double x) const;
  /// In float, for kernels; within 4 ulp of the rounded double result, 1e-7 absolute near the zeros of silu and gelu.
  float apply_f32(float x) const;
};

/// Attributes `activation` (string, default "") and `activation_params` (floats); to be listed in an OpDef's attrs.
inline constexpr AttrDef kActivationAttr = string_attr("activation", "");
inline constexpr AttrDef kActivationParamsAttr = floats_attr("activation_params");

/// Reads both attributes. kInvalidArgument: the name is unknown, the number of parameters is wrong, or one is NaN.
Result<Activation> parse_activation(const NodeView& node);

/// For shape rules: parse_activation, and that results of type `y` can take it: floats any; quantised 8-bit integers
/// none, relu and clip; plain integers none.
Status check_activation(const NodeView& node, const TensorType& y);

/// Quantised results: the stored integer q becomes min(max(q, range.min), range.max). Without activation that is the
/// range of y's element type; relu raises min to the zero point; clip to those of quantize(min) and quantize(max). `y`
/// is quantised per tensor, `activation` satisfies is_clamp().
IntRange activation_range(const Activation& activation, const TensorType& y);

}  // namespace pinnace
