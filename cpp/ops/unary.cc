// The rows of unary.inc as tables, and the function of a node.
#include "ops/unary.h"

namespace pinnace {
namespace {

struct Row {
  const char* name;
  const AttrDef* parameters;
  uint8_t parameter_count;
  UnaryUse use;
};
constexpr Row kRows[] = {
    {"", nullptr, 0, UnaryUse::FUSED},
#define UNARY(kind, name, use, ...)                      \
  {#name, UnaryRow<UnaryKind::kind>::parameters.begin(), \
   static_cast<uint8_t>(UnaryRow<UnaryKind::kind>::parameters.size()), UnaryUse::use},
#include "ops/unary.inc"
#undef UNARY
};

constexpr const Row& row_of(UnaryKind kind) {
  return kRows[static_cast<size_t>(kind)];
}

}  // namespace

std::string_view unary_name(UnaryKind kind) {
  return row_of(kind).name;
}

std::span<const AttrDef> unary_parameters(UnaryKind kind) {
  return {row_of(kind).parameters, row_of(kind).parameter_count};
}

UnaryUse unary_use(UnaryKind kind) {
  return row_of(kind).use;
}

double Unary::operator()(double x) const {
  switch (kind) {
#define UNARY_ALONE(kind)
#define UNARY_POWER(kind)
#define UNARY_FUSED(kind) \
  case UnaryKind::kind:   \
    return UnaryRow<UnaryKind::kind>::formula(x, p, q);
#define UNARY_EPILOGUE(kind) UNARY_FUSED(kind)
#define UNARY(kind, name, use, ...) UNARY_##use(kind)
#include "ops/unary.inc"
#undef UNARY
    default:
      return x;
  }
}

std::optional<Unary> unary_of(const NodeView& node) {
  Unary found{node.op().unary};
  if (found.none()) return std::nullopt;
  const std::span<const AttrDef> parameters = unary_parameters(found.kind);
  double* const values[] = {&found.p, &found.q};
  if (found.kind == UnaryKind::kClip) {  // whose parameters are inputs
    for (int i : {0, 1}) {
      double& bound = *values[i];
      bound = parameters[static_cast<size_t>(i)].float_default();
      if (!node.has_input(i + 1)) continue;
      const auto known = node.input_floats(i + 1);
      if (!known || known->size() != 1 || std::isnan(known->front())) return std::nullopt;
      bound = known->front();
    }
    return found;
  }
  if (found.kind == UnaryKind::kGelu && node.attr_string("approximate") == "tanh") found.kind = UnaryKind::kGeluTanh;
  for (size_t i = 0; i < parameters.size(); ++i) *values[i] = node.attr_float(parameters[i].name);
  return found;
}

}  // namespace pinnace
