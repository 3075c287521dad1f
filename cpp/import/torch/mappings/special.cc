// Mathematical functions that ONNX does not name, as formulas of those that it does. f16 is computed in f32, as PyTorch
// does.
#include <cmath>

#include "import/torch/mappings/formula.h"

namespace pinnace::torch_import {
namespace {

Formula formula(Call& c) {
  return Formula(c, compute_type(c.out_dtype()));
}

void map_scaled(Call& c) {  // deg2rad, rad2deg
  const Formula f = formula(c);
  f.output(f("mul", f.argument("self"), c.parameter() == "deg2rad" ? M_PI / 180 : 180 / M_PI));
}

// the angle of a real number: 0 or pi; NaN stays
void map_angle(Call& c) {
  const Formula f = formula(c);
  const ValueId x = f.argument("self");
  if ((dtypes(c.dtype_of(c.tensor("self"))) & kFloats) == 0) return f.output(f("where", f("less", x, 0.0), M_PI, 0.0));
  f.output(f("where", c.add("is_nan", {x}), x, f("where", f("less", x, 0.0), M_PI, 0.0)));
}

void map_signbit(Call& c) {
  const ValueId x = c.tensor("self");
  if (c.dtype_of(x) == DType::kBool) return c.output(c.add("xor", {x, x}));
  const Formula f(c, c.dtype_of(x));
  c.output(dtypes(f.dtype()) & kFloats ? f.signed_negative(x) : f("less", x, 0.0));
}

void map_copysign(Call& c) {
  const Formula f = formula(c);
  const ValueId magnitude = f("abs", f.argument("self"));
  f.output(f("where", f.signed_negative(f.argument("other")), f("neg", magnitude), magnitude));
}

void map_heaviside(Call& c) {
  const DType dtype = c.out_dtype();
  const Formula f(c, dtype == DType::kBool ? DType::kU8 : dtype);
  const ValueId x = f.argument("self");
  f.output(f("where", f.equal(x, 0), f.argument("values"), f("where", f("greater", x, 0.0), 1.0, 0.0)));
}

// In f64, where squares of f32 do not overflow.
void map_hypot(Call& c) {
  const Formula f(c, DType::kF64);
  const ValueId x = f.argument("self"), y = f.argument("other");
  f.output(f("sqrt", f("add", f("mul", x, x), f("mul", y, y))));
}

// x * log(y) or x * log1p(y), 0 where x is 0 unless y is NaN
void map_xlog(Call& c) {
  const Formula f = formula(c);
  const ValueId x = f.argument("self"), y = f.argument("other");
  const ValueId log = c.parameter() == "log1p" ? f.log1p(y) : f("log", y);
  f.output(f("where", c.add("is_nan", {y}), y, f("where", f.equal(x, 0), 0.0, f("mul", x, log))));
}

// log(exp a + exp b) around the larger one; infinities of one sign are their own sum
void map_log_add(Call& c) {
  const Formula f = formula(c);
  const ValueId a = f.argument("self"), b = f.argument("other");
  const bool two = c.parameter() == "2";
  ValueId distance = f("neg", f("abs", f("sub", a, b)));
  if (two) distance = f("mul", distance, std::log(2.0));
  ValueId more = f("softplus", distance);
  if (two) more = f("mul", more, 1 / std::log(2.0));
  f.output(f("where", f("and", c.add("is_inf", {a}), f("equal", a, b)), a, f("add", f("max", a, b), more)));
}

void map_sinc(Call& c) {
  const Formula f = formula(c);
  const ValueId x = f("mul", f.argument("self"), M_PI);
  f.output(f("where", f.equal(x, 0), 1.0, f("div", f("sin", x), x)));
}

// -x log x, 0 at 0, -inf below
void map_entropy(Call& c) {
  const Formula f = formula(c);
  const ValueId x = f.argument("self");
  const ValueId inside = f("neg", f("mul", x, f("log", x)));
  const ValueId outside = f("where", f.equal(x, 0), 0.0, f("where", c.add("is_nan", {x}), x, -INFINITY));
  f.output(f("where", f("greater", x, 0.0), inside, outside));
}

void map_normal_cdf(Call& c) {
  const Formula f = formula(c);
  f.output(f("mul", f("add", f("erf", f("mul", f.argument("self"), std::sqrt(0.5))), 1.0), 0.5));
}

// sqrt(2) * erfinv(2 x - 1)
void map_normal_quantile(Call& c) {
  const Formula f = formula(c);
  f.output(f("mul", f("erf_inv", f("sub", f("mul", f.argument("self"), 2.0), 1.0)), std::sqrt(2.0)));
}

void map_float_power(Call& c) {
  const Formula f(c, DType::kF64);
  f.output(f("pow", f.argument("self"), f.argument("exponent")));
}

void map_ldexp(Call& c) {
  const Formula f = formula(c);
  f.output(f("mul", f.argument("self"), f("pow", 2.0, f.argument("other"))));
}

// fmax and fmin: a NaN beside a number is passed over
void map_fmax(Call& c) {
  const DType dtype = c.out_dtype();
  const Formula f(c, dtype == DType::kBool ? DType::kU8 : dtype);
  const ValueId a = f.argument("self"), b = f.argument("other");
  const ValueId chosen = f(c.parameter(), a, b);
  if ((dtypes(dtype) & kFloats) == 0) return f.output(chosen);
  f.output(f("where", c.add("is_nan", {a}), b, f("where", c.add("is_nan", {b}), a, chosen)));
}

// |a - b| <= atol + rtol * |b|; equal values are close, infinities too; NaN only if asked
void map_is_close(Call& c) {
  const ValueId x = c.tensor("self"), y = c.tensor("other");
  const double rtol = c.number("rtol", 1e-5), atol = c.number("atol", 1e-8);
  const bool nan = c.boolean("equal_nan", false);
  const DType dtype = c.dtype_of(x);
  const bool real = (dtypes(dtype) & kFloats) != 0;
  if (dtype == DType::kBool) return c.output(c.add("equal", {x, y}));
  const ValueId same = c.add("equal", {x, y});
  // Integers are compared as PyTorch compares them: bounds in floats.
  const Formula f(c, real ? compute_type(dtype) : DType::kF64);
  const ValueId a = c.cast(x, f.dtype()), b = c.cast(y, f.dtype());
  const ValueId distance = f("abs", f("sub", a, b));
  const ValueId bound = f("add", f("abs", f("mul", b, rtol)), atol);
  ValueId close = f("or", same, f("and", f("less_or_equal", distance, bound), f("less", distance, INFINITY)));
  if (nan && real) close = f("or", close, f("and", c.add("is_nan", {a}), c.add("is_nan", {b})));
  c.output(close);
}

void map_is_real(Call& c) {
  const ValueId x = c.tensor("self");
  c.output(c.full(c.sizes_of(x), c.constant_int(1, DType::kBool)));
}

// Of a real tensor these change nothing.
void map_conjugate(Call& c) {
  c.shares(c.parameter() == "copy" ? Sharing::kNone : Sharing::kSame);
  c.output(c.tensor("self"));
}

// What remains of conjugates where only their imaginary part is looked at.
void map_negated(Call& c) {
  c.shares(Sharing::kUncertain);
  c.output(c.add("neg", {c.tensor("self")}));
}

void map_common_divisor(Call& c) {
  const Formula f(c, c.out_dtype());
  const ValueId a = f.argument("self"), b = f.argument("other"), divisor = f("gcd", a, b);
  if (c.parameter() == "gcd") return c.output(divisor);
  // |a / gcd * b|, where 0 and 0 have none
  const ValueId one = c.constant_int(1, f.dtype()), none = c.add("equal", {divisor, c.constant_int(0, f.dtype())});
  c.output(f("abs", f("mul", f("div", a, f("where", none, one, divisor)), b)));
}

void map_bessel(Call& c) {  // "0", "1e": order, scaled
  const Formula f = formula(c);
  f.output(c.add("bessel_i", {f.argument("self")},
                 {{"order", c.parameter()[0] - '0'}, {"scaled", c.parameter().size() > 1 ? 1 : 0}}));
}

void map_zeta(Call& c) {
  const Formula f = formula(c);
  f.output(f("zeta", f.argument("self"), f.argument("other")));
}

// n! (-1)^(n + 1) zeta(n + 1, x); of order 0 it is digamma
void map_polygamma(Call& c) {
  const Formula f = formula(c);
  const int64_t n = c.integer("n");
  const ValueId x = f.argument("self");
  if (n < 0 || n > 170) return c.fail("polygamma of this order", str_cat(n));
  if (n == 0) return f.output(f("digamma", x));
  const double factor = (n % 2 ? 1 : -1) * std::tgamma(static_cast<double>(n) + 1);
  f.output(f("mul", f("zeta", static_cast<double>(n + 1), x), factor));
}

void map_erfcx(Call& c) {
  const Formula f = formula(c);
  f.output(f("erfcx", f.argument("self")));
}

// log of the normal distribution: below -1 by erfcx, which does not vanish there
void map_log_normal_cdf(Call& c) {
  const Formula f = formula(c);
  const ValueId x = f.argument("self"), t = f("mul", x, std::sqrt(0.5));
  const ValueId low = f("sub", f("log", f("mul", f("erfcx", f("neg", t)), 0.5)), f("mul", t, t));
  const ValueId missing = f("mul", f.erfc(t), 0.5);  // to 1
  f.output(f("where", f("less", x, -1.0), low, f.log1p(f("neg", missing))));
}

constexpr Mapping kMappings[] = {
    {"aten._conj", map_conjugate, ""},
    {"aten._conj_physical", map_conjugate, "copy"},
    {"aten._neg_view", map_negated, ""},
    {"aten.angle", map_angle, ""},
    {"aten.conj", map_conjugate, ""},
    {"aten.conj_physical", map_conjugate, "copy"},
    {"aten.copysign", map_copysign, ""},
    {"aten.deg2rad", map_scaled, "deg2rad"},
    {"aten.float_power", map_float_power, ""},
    {"aten.fmax", map_fmax, "max"},
    {"aten.fmin", map_fmax, "min"},
    {"aten.gcd", map_common_divisor, "gcd"},
    {"aten.heaviside", map_heaviside, ""},
    {"aten.hypot", map_hypot, ""},
    {"aten.i0", map_bessel, "0"},
    {"aten.isclose", map_is_close, ""},
    {"aten.isreal", map_is_real, ""},
    {"aten.lcm", map_common_divisor, "lcm"},
    {"aten.ldexp", map_ldexp, ""},
    {"aten.logaddexp", map_log_add, ""},
    {"aten.logaddexp2", map_log_add, "2"},
    {"aten.polygamma", map_polygamma, ""},
    {"aten.rad2deg", map_scaled, "rad2deg"},
    {"aten.real", map_conjugate, ""},
    {"aten.resolve_conj", map_conjugate, ""},
    {"aten.resolve_neg", map_conjugate, ""},
    {"aten.signbit", map_signbit, ""},
    {"aten.sinc", map_sinc, ""},
    {"aten.special_entr", map_entropy, ""},
    {"aten.special_erfcx", map_erfcx, ""},
    {"aten.special_i0", map_bessel, "0"},
    {"aten.special_i0e", map_bessel, "0e"},
    {"aten.special_i1", map_bessel, "1"},
    {"aten.special_i1e", map_bessel, "1e"},
    {"aten.special_log_ndtr", map_log_normal_cdf, ""},
    {"aten.special_modified_bessel_i0", map_bessel, "0"},
    {"aten.special_modified_bessel_i1", map_bessel, "1"},
    {"aten.special_ndtr", map_normal_cdf, ""},
    {"aten.special_ndtri", map_normal_quantile, ""},
    {"aten.special_polygamma", map_polygamma, ""},
    {"aten.special_xlog1py", map_xlog, "log1p"},
    {"aten.special_zeta", map_zeta, ""},
    {"aten.xlogy", map_xlog, ""},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> special_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
