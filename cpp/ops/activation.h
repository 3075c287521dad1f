// The activation that conv, conv_transpose, gemm, mat_mul and add may carry, so that a kernel applies it to a result
// that is still in a register: a unary function of unary.inc marked FUSED or EPILOGUE. Parsed once per node.
#pragma once

#include <optional>
#include <string_view>

#include "ops/element.h"
#include "ops/unary.h"

namespace pinnace {

using Activation = Unary;

/// The function of that name, kNone for ""; nothing where no activation has the name.
std::optional<UnaryKind> activation_from_name(std::string_view name);

/// Attributes `activation` (string, default "") and `activation_params` (floats); to be listed in an OpDef's attrs.
inline constexpr AttrDef kActivationAttr = string_attr("activation", "");
inline constexpr AttrDef kActivationParamsAttr = floats_attr("activation_params");

/// Whether nodes of the operator may carry an activation.
bool carries_activation(const OpDef& op);

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
