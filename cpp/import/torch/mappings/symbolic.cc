// Numbers of Python in the graph: sizes, arithmetic on them, items of tensors; and assertions.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

using Kind = Scalar::Kind;

Scalar positional_scalar(Call& c, size_t i) {
  const Argument* a = c.positional(i);
  if (!a) {
    c.fail("an argument is missing");
    return {};
  }
  return c.scalar_of(*a);
}

/// As a value of that type, [1].
ValueId value_of(Call& c, const Scalar& s, DType dtype) {
  if (!s.known) return c.cast(s.value, dtype);
  if (s.kind == Kind::kFloat) return c.constant(s.real, dtype, {1});
  return c.constant_int(s.integer, dtype, {1});
}

int64_t floor_divide(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

/// Python's result for two integers; nothing if it overflows, divides by zero or is no integer.
std::optional<Scalar> of_ints(std::string_view op, int64_t a, int64_t b) {
  int64_t r = 0;
  if (op == "add") return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(Scalar::of_int(r));
  if (op == "sub") return __builtin_sub_overflow(a, b, &r) ? std::nullopt : std::optional(Scalar::of_int(r));
  if (op == "mul") return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(Scalar::of_int(r));
  const bool divides = b != 0 && !(a == INT64_MIN && b == -1);
  if (op == "floordiv") return divides ? std::optional(Scalar::of_int(floor_divide(a, b))) : std::nullopt;
  if (op == "mod") return divides ? std::optional(Scalar::of_int(a - floor_divide(a, b) * b)) : std::nullopt;
  if (op == "truediv")
    return b ? std::optional(Scalar::of_float(static_cast<double>(a) / static_cast<double>(b))) : std::nullopt;
  if (op == "min") return Scalar::of_int(std::min(a, b));
  if (op == "max") return Scalar::of_int(std::max(a, b));
  if (op == "equal") return Scalar::of_bool(a == b);
  if (op == "not_equal") return Scalar::of_bool(a != b);
  if (op == "less") return Scalar::of_bool(a < b);
  if (op == "less_or_equal") return Scalar::of_bool(a <= b);
  if (op == "greater") return Scalar::of_bool(a > b);
  if (op == "greater_or_equal") return Scalar::of_bool(a >= b);
  return std::nullopt;
}

bool is_comparison(std::string_view op) {
  return op == "equal" || op == "not_equal" || op.starts_with("less") || op.starts_with("greater");
}

void map_arithmetic(Call& c) {
  const Scalar a = positional_scalar(c, 0), b = positional_scalar(c, 1);
  if (!c.ok()) return;
  std::string_view op = c.parameter();
  const bool whole = a.kind != Kind::kFloat && b.kind != Kind::kFloat;
  if (a.known && b.known && whole) {
    if (const auto r = of_ints(op, a.integer, b.integer)) return c.output_scalar(*r);
    return c.fail("arithmetic on numbers known at export", std::string(op));
  }
  const DType dtype = whole && op != "truediv" ? DType::kI64 : DType::kF64;
  const ValueId x = value_of(c, a, dtype), y = value_of(c, b, dtype);
  if (is_comparison(op)) {
    if (op == "not_equal")
      return c.output_scalar(Scalar::of_value(Kind::kBool, c.add("not", {c.add("equal", {x, y})})));
    return c.output_scalar(Scalar::of_value(Kind::kBool, c.add(op, {x, y})));
  }
  const Kind kind = dtype == DType::kI64 ? Kind::kInt : Kind::kFloat;
  ValueId r;
  if (op == "floordiv") {
    // Sizes are not negative, and what divides them is positive: truncation is the floor.
    const bool positive = b.known && b.integer > 0;
    if (dtype == DType::kF64) {
      r = c.add("floor", {c.add("div", {x, y})});
    } else if (positive) {  // floor(a / b) = (a - mod(a, b)) / b, also where a is negative
      r = c.add("div", {c.add("sub", {x, c.add("mod", {x, y})}), y});
    } else {
      r = c.add("div", {c.add("sub", {x, c.add("mod", {x, y})}), y});
    }
  } else if (op == "truediv") {
    r = c.add("div", {x, y});
  } else if (op == "mod" && dtype == DType::kF64) {
    r = c.add("sub", {x, c.add("mul", {c.add("floor", {c.add("div", {x, y})}), y})});
  } else {
    r = c.add(op, {x, y});
  }
  c.output_scalar(Scalar::of_value(kind, r));
}

void map_power(Call& c) {
  const Scalar a = positional_scalar(c, 0), b = positional_scalar(c, 1);
  if (!c.ok()) return;
  const bool whole = a.kind != Kind::kFloat && b.kind != Kind::kFloat && (!b.known || b.integer >= 0);
  const DType dtype = whole ? DType::kI64 : DType::kF64;
  const ValueId r = c.add("pow", {value_of(c, a, dtype), value_of(c, b, dtype)});
  c.output_scalar(Scalar::of_value(whole ? Kind::kInt : Kind::kFloat, r));
}

void map_negate(Call& c) {
  const Scalar a = positional_scalar(c, 0);
  if (a.known && a.kind == Kind::kInt && a.integer != INT64_MIN) return c.output_scalar(Scalar::of_int(-a.integer));
  const DType dtype = a.kind == Kind::kFloat ? DType::kF64 : DType::kI64;
  c.output_scalar(
      Scalar::of_value(a.kind == Kind::kFloat ? Kind::kFloat : Kind::kInt, c.add("neg", {value_of(c, a, dtype)})));
}

void map_truth(Call& c) {
  const std::string_view op = c.parameter();
  const Scalar a = positional_scalar(c, 0);
  if (op == "not") {
    if (a.known) return c.output_scalar(Scalar::of_bool(a.number() == 0));
    return c.output_scalar(Scalar::of_value(Kind::kBool, c.add("not", {value_of(c, a, DType::kBool)})));
  }
  const Scalar b = positional_scalar(c, 1);
  if (a.kind == Kind::kInt || b.kind == Kind::kInt) return c.fail("bits of integers of Python");
  if (a.known && b.known)
    return c.output_scalar(Scalar::of_bool(op == "and" ? a.integer && b.integer : a.integer || b.integer));
  c.output_scalar(
      Scalar::of_value(Kind::kBool, c.add(op, {value_of(c, a, DType::kBool), value_of(c, b, DType::kBool)})));
}

// int(x), float(x), trunc, floor, ceil, round of a number
void map_convert(Call& c) {
  const std::string_view op = c.parameter();
  const Scalar a = positional_scalar(c, 0);
  if (!c.ok()) return;
  if (op == "float") {
    if (a.known) return c.output_scalar(Scalar::of_float(a.number()));
    return c.output_scalar(Scalar::of_value(Kind::kFloat, value_of(c, a, DType::kF64)));
  }
  if (op == "sqrt") {
    if (a.known) return c.output_scalar(Scalar::of_float(std::sqrt(a.number())));
    return c.output_scalar(Scalar::of_value(Kind::kFloat, c.add("sqrt", {value_of(c, a, DType::kF64)})));
  }
  if (a.kind != Kind::kFloat)
    return c.output_scalar(a.known ? Scalar::of_int(a.integer)
                                   : Scalar::of_value(Kind::kInt, value_of(c, a, DType::kI64)));
  if (a.known) {
    const double r = op == "floor"   ? std::floor(a.real)
                     : op == "ceil"  ? std::ceil(a.real)
                     : op == "round" ? std::nearbyint(a.real)
                                     : std::trunc(a.real);
    if (!(std::fabs(r) < 9e18)) return c.fail("a number beyond 64 bits");
    return c.output_scalar(Scalar::of_int(static_cast<int64_t>(r)));
  }
  ValueId v = a.value;
  if (op == "floor" || op == "ceil" || op == "round") v = c.add(op, {v});
  c.output_scalar(Scalar::of_value(Kind::kInt, c.cast(v, DType::kI64)));
}

void map_choose(Call& c) {
  const Scalar condition = positional_scalar(c, 0), yes = positional_scalar(c, 1), no = positional_scalar(c, 2);
  if (!c.ok()) return;
  if (condition.known) return c.output_scalar(condition.integer ? yes : no);
  const bool real = yes.kind == Kind::kFloat || no.kind == Kind::kFloat;
  const DType dtype = real ? DType::kF64 : DType::kI64;
  c.output_scalar(Scalar::of_value(real ? Kind::kFloat : Kind::kInt,
                                   c.add("where", {condition.value, value_of(c, yes, dtype), value_of(c, no, dtype)})));
}

void map_size(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t axis = c.axis("dim", c.rank(x));
  if (c.rank(x) == 0) return c.fail("the size of a tensor without dimensions");
  c.output_scalar(c.size_of(x, axis));
}

void map_numel(Call& c) {
  const ValueId x = c.tensor("self");
  Scalar count = Scalar::of_int(1);
  for (int i = 0; i < c.rank(x); ++i) count = c.multiply_sizes(count, c.size_of(x, i));
  c.output_scalar(count);
}

void map_item(Call& c) {
  const ValueId x = c.tensor("self");
  const DType dtype = c.dtype_of(x);
  const bool real = (dtypes(dtype) & kFloats) != 0;
  const DType as = real ? DType::kF64 : dtype == DType::kBool ? DType::kBool : DType::kI64;
  const ValueId v = c.cast(c.reshape(x, std::vector<int64_t>{1}), as);
  c.output_scalar(Scalar::of_value(real ? Kind::kFloat : dtype == DType::kBool ? Kind::kBool : Kind::kInt, v));
}

/// The symbol and the divisor of "a dimension is a multiple of a number"; nothing of other conditions.
std::optional<std::pair<std::string, int64_t>> divided_symbol(const Expression& e) {
  const bool equality = e.kind == Expression::Kind::kCall && (e.name == "Equality" || e.name == "Eq");
  if (!equality || e.arguments.size() != 2) return std::nullopt;
  const Expression &left = e.arguments[0], &right = e.arguments[1];
  const bool remainder = left.kind == Expression::Kind::kCall && (left.name == "Mod" || left.name == "PythonMod");
  if (!remainder || left.arguments.size() != 2 || !right.is_integer() || right.integer != 0) return std::nullopt;
  const Expression &symbol = left.arguments[0], &divisor = left.arguments[1];
  if (!symbol.is_symbol() || !divisor.is_integer() || divisor.integer < 1) return std::nullopt;
  return std::pair(symbol.name, divisor.integer);
}

// With prefer_deferred_runtime_asserts_over_guards torch.export traces the branch that the example takes and asserts
// what decided it. That a dimension is a multiple of a number becomes the dimension's. Other conditions are dropped:
// most of them are torch's own questions about strides, which would refuse sizes that the program takes; bounds and
// equalities of dimensions it never defers.
void map_assertion(Call& c) {
  const Argument* condition = c.positional(0);
  for (size_t i = 1; i < c.node().inputs.size(); ++i) c.positional(i);
  c.no_output();
  if (!condition || condition->kind != ArgumentKind::kSymBool) return;
  const auto at = c.scope().def->conditions.find(condition->text);
  if (at == c.scope().def->conditions.end()) return;
  Session& session = c.builder().session;
  const auto parsed = session.expression(at->second);
  if (!parsed) return;  // it has functions that no size is made of
  const auto divided = divided_symbol(**parsed);
  if (!divided) return;
  for (Symbol& symbol : session.symbols) {
    if (symbol.name != divided->first || symbol.multiple_of % divided->second == 0) continue;
    int64_t both;
    if (__builtin_mul_overflow(symbol.multiple_of / std::gcd(symbol.multiple_of, divided->second), divided->second,
                               &both)) {
      return c.fail("a dimension that is a multiple of two large numbers", at->second);
    }
    if (symbol.max / both * both < symbol.min) return c.fail("no size that is allowed", at->second);
    symbol.multiple_of = both;
    session.divided.insert(static_cast<int32_t>(&symbol - session.symbols.data()));
  }
}

// Where a view begins in memory. Traces ask for it after a slice whose start data decide, and compare it: for that any
// number will do, because no comparison decides anything. Who computes with it is refused.
void map_storage_offset(Call& c) {
  c.tensor("self");
  if (!c.ok() || c.node().outputs.empty()) return;
  const std::string& name = c.node().outputs[0].text;
  for (const NodeDef& other : c.scope().def->nodes) {
    const auto is_it = [&](const NamedArgument& a) {
      return a.value.text == name || std::any_of(a.value.items.begin(), a.value.items.end(),
                                                 [&](const Argument& item) { return item.text == name; });
    };
    if (std::none_of(other.inputs.begin(), other.inputs.end(), is_it)) continue;
    const std::string_view target = other.target;
    const bool compares =
        target.find("assert") != std::string_view::npos || target.find("sym_constrain") != std::string_view::npos ||
        target.ends_with("operator.eq") || target.ends_with("operator.ne") || target.ends_with("operator.ge") ||
        target.ends_with("operator.gt") || target.ends_with("operator.le") || target.ends_with("operator.lt");
    if (!compares) return c.fail("where a view begins in memory, in computations", other.name);
  }
  const std::vector<Argument>& outputs = c.scope().def->outputs;
  if (std::any_of(outputs.begin(), outputs.end(), [&](const Argument& a) { return a.text == name; })) {
    return c.fail("where a view begins in memory, as an output");
  }
  c.output_scalar(Scalar::of_int(0));
}

// Checks that hold by construction at export, or that say nothing about the result.
void map_nothing(Call& c) {
  for (size_t i = 0; i < c.node().inputs.size(); ++i) c.positional(i);
  c.no_output();
}

constexpr Mapping kMappings[] = {
    {"_operator.add", map_arithmetic, "add"},
    {"_operator.and_", map_truth, "and"},
    {"_operator.eq", map_arithmetic, "equal"},
    {"_operator.floordiv", map_arithmetic, "floordiv"},
    {"_operator.ge", map_arithmetic, "greater_or_equal"},
    {"_operator.gt", map_arithmetic, "greater"},
    {"_operator.le", map_arithmetic, "less_or_equal"},
    {"_operator.lt", map_arithmetic, "less"},
    {"_operator.mod", map_arithmetic, "mod"},
    {"_operator.mul", map_arithmetic, "mul"},
    {"_operator.ne", map_arithmetic, "not_equal"},
    {"_operator.neg", map_negate, ""},
    {"_operator.or_", map_truth, "or"},
    {"_operator.pos", map_convert, "int"},
    {"_operator.pow", map_power, ""},
    {"_operator.sub", map_arithmetic, "sub"},
    {"_operator.truediv", map_arithmetic, "truediv"},
    {"aten._assert_async", map_nothing, ""},
    {"aten._assert_scalar", map_assertion, ""},
    {"aten._assert_tensor_metadata", map_nothing, ""},
    {"aten._local_scalar_dense", map_item, ""},
    {"aten.item", map_item, ""},
    {"aten.sym_constrain_range", map_nothing, ""},
    {"aten.sym_constrain_range_for_size", map_nothing, ""},
    {"aten.sym_numel", map_numel, ""},
    {"aten.sym_size", map_size, ""},
    {"aten.sym_storage_offset", map_storage_offset, ""},
    {"math.ceil", map_convert, "ceil"},
    {"math.floor", map_convert, "floor"},
    {"math.trunc", map_convert, "trunc"},
    {"round", map_convert, "round"},
    {"torch._sym_sqrt", map_convert, "sqrt"},
    {"torch.sym_float", map_convert, "float"},
    {"torch.sym_int", map_convert, "int"},
    {"torch.sym_ite", map_choose, ""},
    {"torch.sym_max", map_arithmetic, "max"},
    {"torch.sym_min", map_arithmetic, "min"},
    {"torch.sym_not", map_truth, "not"},
    {"torch.sym_sqrt", map_convert, "sqrt"},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> symbolic_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
