// Unary functions as unary.inc lists them: their reference code, the operators that are made of a row, and the function
// that a node applies, as kernels and passes ask for it.
#pragma once

#include <cmath>
#include <numbers>
#include <optional>
#include <string_view>

#include "ops/quantized_map.h"
#include "ops/unary_kind.h"

namespace pinnace {

/// One row of unary.inc: name, parameters and formula in double.
template <UnaryKind kind>
struct UnaryRow;

#define PINNACE_BRACED(...) {__VA_ARGS__}
#define UNARY(kind, row_name, use, row_parameters, reference, simd, glsl)                       \
  template <>                                                                                   \
  struct UnaryRow<UnaryKind::kind> {                                                            \
    static constexpr std::string_view name = #row_name;                                         \
    static constexpr std::initializer_list<AttrDef> parameters = PINNACE_BRACED row_parameters; \
    static double formula(double x, [[maybe_unused]] double p, [[maybe_unused]] double q) {     \
      return reference;                                                                         \
    }                                                                                           \
  };
#include "ops/unary.inc"
#undef UNARY
#undef PINNACE_BRACED

/// A unary function with its parameters.
struct Unary {
  UnaryKind kind = UnaryKind::kNone;
  double p = 0, q = 0;

  bool none() const { return kind == UnaryKind::kNone; }
  /// True where quantised types may carry it as an activation: it is then a clamp of the stored integer, see
  /// activation_range().
  bool is_clamp() const { return none() || kind == UnaryKind::kRelu || kind == UnaryKind::kClip; }
  /// The reference formula, of FUSED and EPILOGUE rows.
  double operator()(double x) const;
};

/// The name in unary.inc; "" for kNone.
std::string_view unary_name(UnaryKind kind);
/// Parameters as attributes with their defaults: none, p, or p and q.
std::span<const AttrDef> unary_parameters(UnaryKind kind);
/// The column `use` of unary.inc; FUSED for kNone.
enum class UnaryUse : uint8_t { ALONE, FUSED, EPILOGUE, POWER };
UnaryUse unary_use(UnaryKind kind);
/// Whether a node may carry the function as its activation.
inline bool is_activation(UnaryKind kind) {
  return unary_use(kind) == UnaryUse::FUSED || unary_use(kind) == UnaryUse::EPILOGUE;
}

/// The function of a node whose operator has a row. Nothing for other operators, and for clip where a bound is not a
/// known number.
std::optional<Unary> unary_of(const NodeView& node);

/// Reference code of an operator of reals that is the row.
template <UnaryKind kind>
Status unary_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const std::span<const AttrDef> parameters(UnaryRow<kind>::parameters);
  const double p = parameters.size() > 0 ? node.attr_float(parameters[0].name) : 0;
  const double q = parameters.size() > 1 ? node.attr_float(parameters[1].name) : 0;
  return map_function(node.threads(), in[0], out[0], [p, q](double x) { return UnaryRow<kind>::formula(x, p, q); });
}

inline constexpr std::initializer_list<InputDef> kOneReal = {{"x", kReals}};

/// The operator of the row's name: floats, and i8 or u8 where quantised. `more`: traits beside being elementwise.
template <UnaryKind kind>
constexpr OpDef unary_op(Traits more = 0) {
  return {
      .name = UnaryRow<kind>::name,
      .inputs = kOneReal,
      .attrs = UnaryRow<kind>::parameters,
      .type = real_function_type,
      .reference = unary_reference<kind>,
      .in_place = 1,
      .traits = Trait::kElementwise | more,
      .unary = kind,
  };
}

}  // namespace pinnace
