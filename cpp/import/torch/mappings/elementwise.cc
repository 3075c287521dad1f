// Arithmetic, comparison, logic and choice, element by element. PyTorch's promotion of element types is made explicit
// by casts; Python's numbers take the type of the tensors beside them.
#include <array>
#include <cmath>
#include <limits>

#include "import/torch/mappings/formula.h"

namespace pinnace::torch_import {
namespace {

bool is_float(DType dtype) {
  return (dtypes(dtype) & kFloats) != 0;
}

// self op other, both promoted to the result's type
void map_binary(Call& c) {
  const DType dtype = c.out_dtype();
  const Operand a = c.operand("self"), b = c.operand("other");
  if (dtype == DType::kBool) {  // true * true, max(true, false)
    const char* op = c.parameter() == "max" ? "or" : "and";
    return c.output(c.add(op, {c.as_tensor(a, dtype), c.as_tensor(b, dtype)}));
  }
  c.output(c.add(c.parameter(), {c.as_tensor(a, dtype), c.as_tensor(b, dtype)}));
}

// add, sub, rsub: self ± alpha * other
void map_sum(Call& c) {
  const DType dtype = c.out_dtype();
  Operand a = c.operand("self"), b = c.operand("other");
  const Scalar alpha = c.scalar("alpha", Scalar::of_int(1));
  if (c.parameter() == "rsub") std::swap(a, b);
  // rsub is other - alpha * self: after the swap alpha still belongs to the second operand.
  if (dtype == DType::kBool) {
    if (c.parameter() != "add") return c.fail("subtraction of bools");
    const ValueId left = c.as_tensor(a, dtype), right = c.as_tensor(b, dtype);
    return c.output(c.add("or", {left, alpha.known && alpha.number() != 0
                                           ? right
                                           : c.add("and", {right, c.as_tensor({kNoValue, alpha}, dtype)})}));
  }
  const bool scaled = !alpha.known || alpha.number() != 1;
  const DType in = scaled ? compute_type(dtype) : dtype;
  const ValueId left = c.as_tensor(a, in);
  ValueId right = c.as_tensor(b, in);
  if (scaled) right = c.add("mul", {right, c.as_tensor({kNoValue, alpha}, in)});
  c.output(c.cast(c.add(c.parameter() == "add" ? "add" : "sub", {left, right}), dtype));
}

// PyTorch's (and Python's) steps: the quotient of what is left without the remainder, brought to the nearest integer.
ValueId floor_divide_real(Call& c, ValueId a, ValueId b, DType dtype) {
  const DType in = compute_type(dtype);
  a = c.cast(a, in);
  b = c.cast(b, in);
  const ValueId zero = c.constant(0, in), one = c.constant(1, in);
  const ValueId ratio = c.add("div", {a, b}), rest = c.add("mod", {a, b}, {{"fmod", 1}});
  const ValueId differ = c.add("xor", {c.add("less", {rest, zero}), c.add("less", {b, zero})});
  const ValueId inexact = c.add("not", {c.add("equal", {rest, zero})});
  ValueId whole = c.add("div", {c.add("sub", {a, rest}), b});
  whole = c.add("where", {c.add("and", {differ, inexact}), c.add("sub", {whole, one}), whole});
  const ValueId floor = c.add("floor", {whole});
  const ValueId up = c.add("greater", {c.add("sub", {whole, floor}), c.constant(0.5, in)});
  ValueId y = c.add("where", {up, c.add("add", {floor, one}), floor});
  // The sign of a zero is the ratio's; a division by zero is the ratio itself.
  y = c.add("where", {c.add("equal", {whole, zero}), c.add("mul", {ratio, zero}), y});
  y = c.add("where", {c.add("equal", {b, zero}), ratio, y});
  return c.cast(y, dtype);
}

ValueId floor_divide(Call& c, ValueId a, ValueId b, DType dtype) {
  if (is_float(dtype)) return floor_divide_real(c, a, b, dtype);
  const ValueId quotient = c.add("div", {a, b});
  const DTypes unsigned_types = kU8 | kBool | dtypes(DType::kU16, DType::kU32, DType::kU64);
  if (dtypes(dtype) & unsigned_types) return quotient;
  // div truncates: one less where the remainder is not zero and the signs differ.
  const ValueId zero = c.constant_int(0, dtype);
  const ValueId rest = c.add("sub", {a, c.add("mul", {quotient, b})});
  const ValueId inexact = c.add("not", {c.add("equal", {rest, zero})});
  const ValueId differ = c.add("xor", {c.add("less", {rest, zero}), c.add("less", {b, zero})});
  return c.add("sub", {quotient, c.cast(c.add("and", {inexact, differ}), dtype)});
}

void map_divide(Call& c) {
  const DType dtype = c.out_dtype();
  const std::string mode = c.parameter() == "floor" ? "floor" : c.string("rounding_mode");
  const ValueId a = c.as_tensor(c.operand("self"), dtype), b = c.as_tensor(c.operand("other"), dtype);
  if (mode == "floor") return c.output(floor_divide(c, a, b, dtype));
  if (mode == "trunc" && is_float(dtype)) {  // towards zero: floor of the magnitude with the sign put back
    const DType in = compute_type(dtype);
    const ValueId ratio = c.add("div", {c.cast(a, in), c.cast(b, in)});
    return c.output(c.cast(c.add("mul", {c.add("sign", {ratio}), c.add("floor", {c.add("abs", {ratio})})}), dtype));
  }
  if (!mode.empty() && mode != "trunc") return c.fail("rounding_mode", mode);
  c.output(c.add("div", {a, b}));
}

void map_remainder(Call& c) {
  const DType dtype = c.out_dtype();
  const ValueId a = c.as_tensor(c.operand("self"), dtype), b = c.as_tensor(c.operand("other"), dtype);
  if (c.parameter() == "fmod") return c.output(c.add("mod", {a, b}, {{"fmod", 1}}));
  if (!is_float(dtype)) return c.output(c.add("mod", {a, b}));
  // The sign of the divisor: fmod, plus the divisor where the signs differ and the rest is not zero.
  const ValueId rest = c.add("mod", {a, b}, {{"fmod", 1}}), zero = c.constant(0, dtype);
  const ValueId differ = c.add("xor", {c.add("less", {rest, zero}), c.add("less", {b, zero})});
  const ValueId inexact = c.add("not", {c.add("equal", {rest, zero})});
  c.output(c.add("where", {c.add("and", {differ, inexact}), c.add("add", {rest, b}), rest}));
}

void map_pow(Call& c) {
  const DType dtype = c.out_dtype();
  const Operand a = c.operand("self"), b = c.operand("exponent");
  const ValueId x = c.as_tensor(a, dtype);
  if (!b.is_tensor() && b.scalar.known && b.scalar.number() == 2) return c.output(c.add("mul", {x, x}));
  if (!b.is_tensor() && b.scalar.known && b.scalar.number() == 1) return c.output(x);
  if (!b.is_tensor() && b.scalar.known && b.scalar.number() == 0.5 && is_float(dtype))
    return c.output(c.add("sqrt", {x}));
  c.output(c.add("pow", {x, c.as_tensor(b, dtype)}));
}

void map_compare(Call& c) {
  const std::array<Operand, 2> both = {c.operand("self"), c.operand("other")};
  DType dtype = c.promote(both);
  const bool order = c.parameter() != "equal" && c.parameter() != "not_equal";
  if (dtype == DType::kBool && order) dtype = DType::kU8;
  const ValueId a = c.as_tensor(both[0], dtype), b = c.as_tensor(both[1], dtype);
  if (c.parameter() == "not_equal") return c.output(c.add("not", {c.add("equal", {a, b})}));
  c.output(c.add(c.parameter(), {a, b}));
}

void map_logical(Call& c) {
  const ValueId a = c.cast(c.tensor("self"), DType::kBool);
  if (c.parameter() == "not") return c.output(c.add("not", {a}));
  c.output(c.add(c.parameter(), {a, c.cast(c.tensor("other"), DType::kBool)}));
}

void map_bitwise(Call& c) {
  const DType dtype = c.out_dtype();
  const ValueId a = c.as_tensor(c.operand("self"), dtype);
  const std::string name = dtype == DType::kBool ? std::string(c.parameter()) : str_cat("bitwise_", c.parameter());
  if (c.parameter() == "not") return c.output(c.add(name, {a}));
  c.output(c.add(name, {a, c.as_tensor(c.operand("other"), dtype)}));
}

void map_shift(Call& c) {
  const DType dtype = c.out_dtype();
  c.output(c.add("bit_shift", {c.as_tensor(c.operand("self"), dtype), c.as_tensor(c.operand("other"), dtype)},
                 {{"direction", std::string(c.parameter())}}));
}

// One input, the result's type: integers become floats where PyTorch says so. Of bools the sign is the bool itself.
void map_unary(Call& c) {
  if (c.out_dtype() == DType::kBool) return c.output(c.cast(c.tensor("self"), DType::kBool));
  c.output(c.add(c.parameter(), {c.cast(c.tensor("self"), c.out_dtype())}));
}

// The sign of NaN is 0
void map_signum(Call& c) {
  const ValueId x = c.tensor("self");
  const DType dtype = c.dtype_of(x);
  if (!is_float(dtype)) return map_unary(c);
  c.output(c.add("where", {c.add("is_nan", {x}), c.constant(0, dtype), c.add("sign", {x})}));
}

// neg has no unsigned integers; they wrap
void map_negative(Call& c) {
  const DType dtype = c.out_dtype();
  if (dtype != DType::kU8 && dtype != DType::kU16 && dtype != DType::kU32 && dtype != DType::kU64) return map_unary(c);
  c.output(c.add("sub", {c.constant_int(0, dtype), c.tensor("self")}));
}

// Rounding leaves integers as they are.
void map_rounding(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t decimals = c.integer("decimals", 0);
  if (!is_float(c.dtype_of(x))) return c.output(x);
  if (decimals != 0) {
    const DType in = compute_type(c.dtype_of(x));
    const ValueId ten = c.constant(std::pow(10.0, static_cast<double>(std::abs(decimals))), in);
    const char *there = decimals > 0 ? "mul" : "div", *back = decimals > 0 ? "div" : "mul";
    const ValueId whole = c.add("round", {c.add(there, {c.cast(x, in), ten})});
    return c.output(c.cast(c.add(back, {whole, ten}), c.dtype_of(x)));
  }
  if (c.parameter() == "trunc" || c.parameter() == "frac") {
    const ValueId whole = c.add("mul", {c.add("sign", {x}), c.add("floor", {c.add("abs", {x})})});
    return c.output(c.parameter() == "trunc" ? whole : c.add("sub", {x, whole}));
  }
  c.output(c.add(c.parameter(), {x}));
}

void map_test(Call& c) {
  const ValueId x = c.tensor("self");
  const bool real = is_float(c.dtype_of(x));
  const ValueId f = real ? x : c.cast(x, DType::kF32);
  if (c.parameter() == "finite") {
    return c.output(c.add("not", {c.add("or", {c.add("is_nan", {f}), c.add("is_inf", {f})})}));
  }
  if (c.parameter() == "nan") return c.output(c.add("is_nan", {f}));
  if (c.parameter() == "posinf") return c.output(c.add("is_inf", {f}, {{"detect_negative", 0}}));
  if (c.parameter() == "neginf") return c.output(c.add("is_inf", {f}, {{"detect_positive", 0}}));
  c.output(c.add("is_inf", {f}));
}

// log2(x) = ln(x) / ln 2 and the like: the parameter names the form.
void map_log_exp(Call& c) {
  const DType dtype = c.out_dtype(), in = compute_type(dtype);
  const ValueId x = c.cast(c.tensor("self"), in);
  const Formula f(c, in);
  const std::string_view form = c.parameter();
  ValueId y;
  if (form == "log2" || form == "log10") {
    y = c.add("mul", {c.add("log", {x}), c.constant(form == "log2" ? 1 / std::log(2.0) : 1 / std::log(10.0), in)});
  } else if (form == "log1p") {
    y = f.log1p(x);
  } else if (form == "exp2") {
    y = c.add("pow", {c.constant(2, in), x});
  } else if (form == "expm1") {
    y = f.expm1(x);
  } else if (form == "erfc") {
    y = f.erfc(x);
  } else {
    y = c.add("reciprocal", {c.add("sqrt", {x})});  // rsqrt
  }
  c.output(c.cast(y, dtype));
}

void map_clamp(Call& c) {
  const DType dtype = c.out_dtype();
  ValueId x = c.cast(c.tensor("self"), dtype);
  const std::string_view form = c.parameter();
  const char* low = form == "max" ? "" : "min";
  const char* high = form == "min" ? "" : "max";
  const auto bound = [&](const char* name) {
    return *name && c.given(name) ? c.as_tensor(c.operand(name), dtype) : kNoValue;
  };
  const ValueId min = bound(low), max = bound(high);
  const bool scalars = (min == kNoValue || c.rank(min) == 0) && (max == kNoValue || c.rank(max) == 0);
  if (min == kNoValue && max == kNoValue) return c.fail("clamp without bounds");
  if (scalars && dtype != DType::kBool) return c.output(c.add("clip", {x, min, max}));
  const bool truth = dtype == DType::kBool;
  if (min != kNoValue) x = c.add(truth ? "or" : "max", {x, min});
  if (max != kNoValue) x = c.add(truth ? "and" : "min", {x, max});
  c.output(x);
}

void map_where(Call& c) {
  const ValueId condition = c.cast(c.tensor("condition"), DType::kBool);
  if (!c.given("self")) {  // where(condition): indices, one tensor per dimension
    const int rank = c.rank(condition);
    const ValueId found = c.add("non_zero", {condition});  // [rank, n]
    std::vector<ValueId> rows;
    for (int i = 0; i < rank; ++i) {
      rows.push_back(c.squeeze(c.slice(found, 0, Scalar::of_int(i), Scalar::of_int(i + 1)), {0}));
    }
    return c.outputs(std::move(rows));
  }
  const DType dtype = c.out_dtype();
  c.output(c.add("where", {condition, c.as_tensor(c.operand("self"), dtype), c.as_tensor(c.operand("other"), dtype)}));
}

void map_masked_fill(Call& c) {
  const DType dtype = c.out_dtype();
  const ValueId self = c.cast(c.tensor("self"), dtype), mask = c.cast(c.tensor("mask"), DType::kBool);
  c.output(c.add("where", {mask, c.as_tensor(c.operand("value"), dtype), self}));
}

// self + value * tensor1 {*,/} tensor2
void map_addc(Call& c) {
  const DType dtype = c.out_dtype(), in = compute_type(dtype);
  const ValueId self = c.cast(c.tensor("self"), in);
  const Scalar value = c.scalar("value", Scalar::of_int(1));
  ValueId factor = c.cast(c.tensor("tensor1"), in);
  if (!value.known || value.number() != 1) factor = c.add("mul", {factor, c.as_tensor({kNoValue, value}, in)});
  c.output(c.cast(c.add("add", {self, c.add(c.parameter(), {factor, c.cast(c.tensor("tensor2"), in)})}), dtype));
}

// From the end that is nearer, as PyTorch does: exact at weight 0 and 1.
void map_lerp(Call& c) {
  const DType dtype = c.out_dtype(), in = compute_type(dtype);
  const ValueId a = c.cast(c.tensor("self"), in), b = c.cast(c.tensor("end"), in);
  const Operand weight = c.operand("weight");
  const ValueId w = c.as_tensor(weight, in), difference = c.add("sub", {b, a});
  const auto from_start = [&] { return c.add("add", {a, c.add("mul", {w, difference})}); };
  const auto from_end = [&] {
    return c.add("sub", {b, c.add("mul", {difference, c.add("sub", {c.constant(1, in), w})})});
  };
  ValueId y;
  if (!weight.is_tensor() && weight.scalar.known) {
    y = std::fabs(weight.scalar.number()) < 0.5 ? from_start() : from_end();
  } else {
    const ValueId near = c.add("less", {c.add("abs", {w}), c.constant(0.5, in)});
    y = c.add("where", {near, from_start(), from_end()});
  }
  c.output(c.cast(y, dtype));
}

void map_atan2(Call& c) {
  const DType dtype = c.out_dtype(), in = compute_type(dtype);
  c.output(c.cast(angle_of(c, c.cast(c.tensor("self"), in), c.cast(c.tensor("other"), in)), dtype));
}

void map_nan_to_num(Call& c) {
  const ValueId x = c.tensor("self");
  const DType dtype = c.dtype_of(x);
  if (!is_float(dtype)) {
    c.ignore({"nan", "posinf", "neginf"});
    return c.output(x);
  }
  const double largest = dtype == DType::kF16    ? 65504.0
                         : dtype == DType::kBF16 ? 3.3895313892515355e38
                         : dtype == DType::kF64  ? std::numeric_limits<double>::max()
                                                 : std::numeric_limits<float>::max();
  const double nan = c.number("nan", 0), high = c.number("posinf", largest), low = c.number("neginf", -largest);
  ValueId y = c.add("where", {c.add("is_nan", {x}), c.constant(nan, dtype), x});
  y = c.add("where", {c.add("is_inf", {x}, {{"detect_negative", 0}}), c.constant(high, dtype), y});
  y = c.add("where", {c.add("is_inf", {x}, {{"detect_positive", 0}}), c.constant(low, dtype), y});
  c.output(y);
}

// Other element type, other device, or nothing: one operator in PyTorch.
/// A constant matrix of bytes, or the transpose of one: weights, whose form as floats products make by themselves, if a
/// dequantize_linear of scale 1 says so.
bool is_stored_matrix(Call& c, ValueId x) {
  if (!c.ok() || (c.dtype_of(x) != DType::kI8 && c.dtype_of(x) != DType::kU8) || c.rank(x) != 2) return false;
  if (c.known(x)) return true;
  const auto& nodes = c.builder().graph.nodes;
  const auto maker = std::find_if(nodes.rbegin(), nodes.rend(), [&](const auto& n) { return n->outputs[0] == x; });
  return maker != nodes.rend() && (*maker)->op == "transpose" && c.known((*maker)->inputs[0]);
}

void map_to(Call& c) {
  const ValueId x = c.tensor("self");
  c.ignore(
      {"dtype", "other", "device", "layout", "pin_memory", "non_blocking", "copy", "memory_format", "dtype_layout"});
  const ValueId y = is_stored_matrix(c, x) && c.out_dtype() == DType::kF32
                        ? c.add("dequantize_linear", {x, c.constant(1, DType::kF32)})
                        : c.cast(x, c.out_dtype());
  const bool copy = c.parameter() == "copy" || c.boolean("copy", false);
  if (y == x && !copy) c.shares(Sharing::kSame);
  c.output(y);
}

void map_copy(Call& c) {  // self takes the elements of src
  const ValueId self = c.tensor("self");
  c.ignore({"non_blocking"});
  c.output(c.expand(c.as_tensor(c.operand("src"), c.dtype_of(self)), c.sizes_of(self)));
}

void map_fill(Call& c) {
  const ValueId self = c.tensor("self");
  const Operand value = c.parameter() == "zero" ? Operand{} : c.operand("value");
  c.output(c.expand(c.as_tensor(value, c.dtype_of(self)), c.sizes_of(self)));
}

constexpr Mapping kMappings[] = {
    {"aten.__and__", map_bitwise, "and"},
    {"aten.__lshift__", map_shift, "LEFT"},
    {"aten.__or__", map_bitwise, "or"},
    {"aten.__rshift__", map_shift, "RIGHT"},
    {"aten.__xor__", map_bitwise, "xor"},
    {"aten._to_copy", map_to, "copy"},
    {"aten.abs", map_unary, "abs"},
    {"aten.absolute", map_unary, "abs"},
    {"aten.acos", map_unary, "acos"},
    {"aten.acosh", map_unary, "acosh"},
    {"aten.add", map_sum, "add"},
    {"aten.addcdiv", map_addc, "div"},
    {"aten.addcmul", map_addc, "mul"},
    {"aten.asin", map_unary, "asin"},
    {"aten.asinh", map_unary, "asinh"},
    {"aten.atan", map_unary, "atan"},
    {"aten.atan2", map_atan2, ""},
    {"aten.atanh", map_unary, "atanh"},
    {"aten.bitwise_and", map_bitwise, "and"},
    {"aten.bitwise_left_shift", map_shift, "LEFT"},
    {"aten.bitwise_not", map_bitwise, "not"},
    {"aten.bitwise_or", map_bitwise, "or"},
    {"aten.bitwise_right_shift", map_shift, "RIGHT"},
    {"aten.bitwise_xor", map_bitwise, "xor"},
    {"aten.ceil", map_rounding, "ceil"},
    {"aten.clamp", map_clamp, ""},
    {"aten.clamp_max", map_clamp, "max"},
    {"aten.clamp_min", map_clamp, "min"},
    {"aten.clip", map_clamp, ""},
    {"aten.copy", map_copy, ""},
    {"aten.cos", map_unary, "cos"},
    {"aten.cosh", map_unary, "cosh"},
    {"aten.digamma", map_unary, "digamma"},
    {"aten.div", map_divide, ""},
    {"aten.divide", map_divide, ""},
    {"aten.eq", map_compare, "equal"},
    {"aten.erf", map_unary, "erf"},
    {"aten.erfc", map_log_exp, "erfc"},
    {"aten.erfinv", map_unary, "erf_inv"},
    {"aten.exp", map_unary, "exp"},
    {"aten.exp2", map_log_exp, "exp2"},
    {"aten.expm1", map_log_exp, "expm1"},
    {"aten.fill", map_fill, ""},
    {"aten.floor", map_rounding, "floor"},
    {"aten.floor_divide", map_divide, "floor"},
    {"aten.fmod", map_remainder, "fmod"},
    {"aten.frac", map_rounding, "frac"},
    {"aten.ge", map_compare, "greater_or_equal"},
    {"aten.greater", map_compare, "greater"},
    {"aten.greater_equal", map_compare, "greater_or_equal"},
    {"aten.gt", map_compare, "greater"},
    {"aten.isfinite", map_test, "finite"},
    {"aten.isinf", map_test, "inf"},
    {"aten.isnan", map_test, "nan"},
    {"aten.isneginf", map_test, "neginf"},
    {"aten.isposinf", map_test, "posinf"},
    {"aten.le", map_compare, "less_or_equal"},
    {"aten.lerp", map_lerp, ""},
    {"aten.less", map_compare, "less"},
    {"aten.less_equal", map_compare, "less_or_equal"},
    {"aten.lgamma", map_unary, "log_gamma"},
    {"aten.log", map_unary, "log"},
    {"aten.log10", map_log_exp, "log10"},
    {"aten.log1p", map_log_exp, "log1p"},
    {"aten.log2", map_log_exp, "log2"},
    {"aten.logical_and", map_logical, "and"},
    {"aten.logical_not", map_logical, "not"},
    {"aten.logical_or", map_logical, "or"},
    {"aten.logical_xor", map_logical, "xor"},
    {"aten.lt", map_compare, "less"},
    {"aten.masked_fill", map_masked_fill, ""},
    {"aten.maximum", map_binary, "max"},
    {"aten.minimum", map_binary, "min"},
    {"aten.mul", map_binary, "mul"},
    {"aten.multiply", map_binary, "mul"},
    {"aten.nan_to_num", map_nan_to_num, ""},
    {"aten.ne", map_compare, "not_equal"},
    {"aten.neg", map_negative, "neg"},
    {"aten.negative", map_negative, "neg"},
    {"aten.not_equal", map_compare, "not_equal"},
    {"aten.pow", map_pow, ""},
    {"aten.reciprocal", map_unary, "reciprocal"},
    {"aten.remainder", map_remainder, ""},
    {"aten.round", map_rounding, "round"},
    {"aten.rsqrt", map_log_exp, "rsqrt"},
    {"aten.rsub", map_sum, "rsub"},
    {"aten.sgn", map_signum, "sign"},
    {"aten.sign", map_signum, "sign"},
    {"aten.sin", map_unary, "sin"},
    {"aten.sinh", map_unary, "sinh"},
    {"aten.sqrt", map_unary, "sqrt"},
    {"aten.sub", map_sum, "sub"},
    {"aten.subtract", map_sum, "sub"},
    {"aten.tan", map_unary, "tan"},
    {"aten.to", map_to, ""},
    {"aten.true_divide", map_divide, ""},
    {"aten.trunc", map_rounding, "trunc"},
    {"aten.type_as", map_to, ""},
    {"aten.where", map_where, ""},
    {"aten.zero", map_fill, "zero"},
    {"prims.convert_element_type", map_to, ""},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> elementwise_mappings() {
  return kMappings;
}

ValueId angle_of(Call& c, ValueId y, ValueId x) {
  const DType in = c.dtype_of(y);
  const ValueId zero = c.constant(0, in), one = c.constant(1, in), pi = c.constant(M_PI, in);
  const auto negative = [&](ValueId v) {  // -0 included
    const ValueId below = c.add("less", {c.add("reciprocal", {v}), zero});
    return c.add("where", {c.add("equal", {v, zero}), below, c.add("less", {v, zero})});
  };
  const auto signed_by_y = [&](ValueId v) { return c.add("where", {negative(y), c.add("neg", {v}), v}); };
  const ValueId x_negative = negative(x);
  // Where both are 0 or both infinite the ratio is undefined, and the angle is that of (±1, ±1) or of the axis.
  const ValueId both_infinite = c.add("and", {c.add("is_inf", {x}), c.add("is_inf", {y})});
  const ValueId both_zero = c.add("and", {c.add("equal", {x, zero}), c.add("equal", {y, zero})});
  ValueId ratio = c.add("abs", {c.add("div", {y, x})});
  ratio = c.add("where", {both_infinite, one, ratio});
  ratio = c.add("where", {both_zero, zero, ratio});
  const ValueId angle = c.add("atan", {ratio});
  return signed_by_y(c.add("where", {x_negative, c.add("sub", {pi, angle}), angle}));
}

}  // namespace pinnace::torch_import
