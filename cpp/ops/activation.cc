// Reading a node's activation, and what quantised results make of it.
#include "ops/activation.h"

namespace pinnace {

namespace {

constexpr UnaryKind kKinds[] = {
    UnaryKind::kNone,
#define UNARY(kind, ...) UnaryKind::kind,
#include "ops/unary.inc"
#undef UNARY
};

/// A loop, and not the list's macro: a statement for each name takes 5 KB of code.
std::string activation_names() {
  std::string names;
  for (const UnaryKind kind : kKinds) {
    if (kind != UnaryKind::kNone && is_activation(kind)) names += str_cat(names.empty() ? "" : ", ", unary_name(kind));
  }
  return names;
}

}  // namespace

std::optional<UnaryKind> activation_from_name(std::string_view name) {
  for (const UnaryKind kind : kKinds) {
    if (is_activation(kind) && unary_name(kind) == name) return kind;
  }
  return std::nullopt;
}

bool carries_activation(const OpDef& op) {
  for (const AttrDef& attr : op.attrs) {
    if (std::string_view(attr.name) == std::string_view(kActivationAttr.name)) return true;
  }
  return false;
}

Result<Activation> parse_activation(const NodeView& node) {
  const std::string_view name = node.attr_string("activation");
  const auto kind = activation_from_name(name);
  if (!kind) return node.error("activation '", name, "' is not one of ", activation_names());
  const auto params = node.attr_floats("activation_params");
  const size_t wanted = unary_parameters(*kind).size();
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
  return node.error("activation '", unary_name(activation.kind), "' does not apply to ", y,
                    y.quantized() ? "; quantised types take relu and clip" : "; plain integers take none");
}

IntRange activation_range(const Activation& activation, const TensorType& y) {
  IntRange range = int_range(y.dtype);
  const ScaleZero p = scale_zero(y);
  const IntRange all = range;
  if (activation.kind == UnaryKind::kRelu) range.min = quantize(0.0f, p, all);
  if (activation.kind == UnaryKind::kClip) {
    range.min = quantize(static_cast<float>(activation.p), p, all);
    range.max = quantize(static_cast<float>(activation.q), p, all);
  }
  return range;
}

}  // namespace pinnace
