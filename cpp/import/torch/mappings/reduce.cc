// Reductions and cumulative operators.
#include <cmath>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

using Ints = std::vector<int64_t>;

bool is_float(DType dtype) {
  return (dtypes(dtype) & kFloats) != 0;
}

/// reduce_X over axes; an empty list of axes of a tensor without dimensions reduces nothing.
ValueId reduce(Call& c, std::string_view op, ValueId x, const Ints& axes, bool keep) {
  if (c.rank(x) == 0) return x;
  return c.add(op, {x, c.constant_ints(axes)}, {{"keepdims", keep}});
}

/// The axes of argument dim, or all.
Ints reduced_axes(Call& c, ValueId x) {
  return c.axes("dim", c.rank(x));
}

// sum, mean, prod, amax, amin: the parameter is the reduction
void map_reduce(Call& c) {
  const ValueId x = c.tensor("self");
  const DType dtype = c.out_dtype();
  c.ignore({"dtype"});
  const Ints axes = reduced_axes(c, x);
  const bool keep = c.boolean("keepdim", false);
  if (c.parameter() == "reduce_mean" && !is_float(dtype))
    return c.fail("mean of integers", std::string(dtype_name(dtype)));
  if (dtype == DType::kBool)
    return c.output(c.cast(reduce(c, c.parameter(), c.cast(x, DType::kU8), axes, keep), dtype));
  ValueId in = c.cast(x, dtype);
  if (c.parameter() == "reduce_prod" && c.rank(x) == 0) return c.output(in);
  c.output(reduce(c, c.parameter(), in, axes, keep));
}

void map_any_all(Call& c) {
  const ValueId x = c.cast(c.cast(c.tensor("self"), DType::kBool), DType::kI32);
  const Ints axes = reduced_axes(c, x);
  const bool keep = c.boolean("keepdim", false);
  // A maximum over nothing is not defined, a sum is.
  const ValueId zero = c.constant_int(0, DType::kI32);
  if (c.parameter() == "any") return c.output(c.add("greater", {reduce(c, "reduce_sum", x, axes, keep), zero}));
  const ValueId misses = c.add("sub", {c.constant_int(1, DType::kI32), x});
  c.output(c.add("equal", {reduce(c, "reduce_sum", misses, axes, keep), zero}));
}

/// Number of elements along axes, as a value of x's type.
ValueId count_of(Call& c, ValueId x, const Ints& axes) {
  Scalar count = Scalar::of_int(1);
  for (int64_t axis : axes) count = c.multiply_sizes(count, c.size_of(x, axis));
  return c.as_tensor({kNoValue, count}, c.dtype_of(x));
}

// var, std and with the mean: sum of squares around the mean over max(0, n - correction)
void map_variance(Call& c) {
  const DType result = c.out_dtype();
  const ValueId x = c.cast(c.tensor("self"), compute_type(result));
  const Ints axes = reduced_axes(c, x);
  const bool keep = c.boolean("keepdim", false);
  double correction = c.boolean("unbiased", true) ? 1 : 0;
  if (c.given("correction")) correction = c.number("correction", 1);
  const DType dtype = c.dtype_of(x);
  const ValueId mean = reduce(c, "reduce_mean", x, axes, true);
  const ValueId centred = c.add("sub", {x, mean});
  const ValueId squares = reduce(c, "reduce_sum", c.add("mul", {centred, centred}), axes, keep);
  const ValueId freedom =
      c.add("max", {c.add("sub", {count_of(c, x, axes), c.constant(correction, dtype)}), c.constant(0, dtype)});
  ValueId y = c.add("div", {squares, freedom});
  if (c.parameter().starts_with("std")) y = c.add("sqrt", {y});
  y = c.cast(y, result);
  if (!c.parameter().ends_with("mean")) return c.output(y);
  c.outputs({y, c.cast(keep ? mean : c.squeeze(mean, axes), result)});
}

ValueId norm(Call& c, ValueId x, double ord, const Ints& axes, bool keep) {
  const DType dtype = c.dtype_of(x);
  if (c.rank(x) > 0 && ord == 2) return reduce(c, "reduce_l2", x, axes, keep);
  if (c.rank(x) > 0 && ord == 1) return reduce(c, "reduce_l1", x, axes, keep);
  x = c.add("abs", {x});
  if (std::isinf(ord)) return reduce(c, ord > 0 ? "reduce_max" : "reduce_min", x, axes, keep);
  if (ord == 0) {
    const ValueId absent = c.add("equal", {x, c.constant(0, dtype)});
    return reduce(c, "reduce_sum", c.cast(c.add("not", {absent}), dtype), axes, keep);
  }
  const ValueId sum = reduce(c, "reduce_sum", c.add("pow", {x, c.constant(ord, dtype)}), axes, keep);
  return c.add("pow", {sum, c.constant(1 / ord, dtype)});
}

void map_vector_norm(Call& c) {
  const bool plain = c.parameter() == "norm";
  const DType result = c.out_dtype(), dtype = compute_type(result);
  ValueId x = c.cast(c.tensor("self"), dtype);
  c.ignore({"dtype"});
  const double ord = c.number(plain ? "p" : "ord", 2);
  const Ints axes = reduced_axes(c, x);
  const bool keep = c.boolean("keepdim", false);
  c.output(c.cast(norm(c, x, ord, axes, keep), result));
}

void map_count_nonzero(Call& c) {
  const ValueId x = c.cast(c.cast(c.tensor("self"), DType::kBool), DType::kI64);
  c.output(reduce(c, "reduce_sum", x, reduced_axes(c, x), false));
}

ValueId flattened(Call& c, ValueId x) {
  return c.reshape(x, Ints{-1});
}

void map_arg(Call& c) {
  ValueId x = c.tensor("self");
  const bool keep = c.boolean("keepdim", false);
  if (c.dtype_of(x) == DType::kBool) x = c.cast(x, DType::kU8);
  if (!c.given("dim")) {
    const int rank = c.rank(x);
    const ValueId at = c.add(c.parameter(), {flattened(c, x)}, {{"axis", 0}, {"keepdims", 0}});
    return c.output(keep ? c.reshape(at, Ints(static_cast<size_t>(rank), 1)) : at);
  }
  const int64_t axis = c.axis("dim", c.rank(x));
  if (c.rank(x) == 0) return c.output(c.constant_int(0));
  c.output(c.add(c.parameter(), {x}, {{"axis", axis}, {"keepdims", keep}}));
}

// max and min: of everything, along a dimension with indices, or of two tensors
void map_extreme(Call& c) {
  const bool largest = c.parameter() == "max";
  const char* op = largest ? "reduce_max" : "reduce_min";
  const DType dtype = c.out_dtype();
  if (c.given("other")) {
    return c.output(
        c.add(c.parameter(), {c.as_tensor(c.operand("self"), dtype), c.as_tensor(c.operand("other"), dtype)}));
  }
  ValueId x = c.tensor("self");
  const bool truth = dtype == DType::kBool;
  if (truth) x = c.cast(x, DType::kU8);
  const auto back = [&](ValueId y) { return truth ? c.cast(y, DType::kBool) : y; };
  if (!c.given("dim")) {
    Ints axes;
    for (int i = 0; i < c.rank(x); ++i) axes.push_back(i);
    return c.output(back(reduce(c, op, x, axes, false)));
  }
  const int64_t axis = c.axis("dim", c.rank(x));
  const bool keep = c.boolean("keepdim", false);
  if (c.rank(x) == 0) return c.outputs({back(x), c.constant_int(0)});
  const ValueId at = c.add(largest ? "arg_max" : "arg_min", {x}, {{"axis", axis}, {"keepdims", keep}});
  c.outputs({back(reduce(c, op, x, {axis}, keep)), at});
}

void map_aminmax(Call& c) {
  const DType dtype = c.out_dtype();
  const ValueId x = c.cast(c.tensor("self"), dtype == DType::kBool ? DType::kU8 : dtype);
  const Ints axes = reduced_axes(c, x);
  const bool keep = c.boolean("keepdim", false);
  c.outputs(
      {c.cast(reduce(c, "reduce_min", x, axes, keep), dtype), c.cast(reduce(c, "reduce_max", x, axes, keep), dtype)});
}

// nansum, nanmean: NaN counts as nothing
void map_without_nan(Call& c) {
  const DType result = c.out_dtype(), dtype = compute_type(result);
  ValueId x = c.tensor("self");
  c.ignore({"dtype"});
  const Ints axes = reduced_axes(c, x);
  const bool keep = c.boolean("keepdim", false), real = is_float(c.dtype_of(x));
  const ValueId nan = real ? c.add("is_nan", {x}) : kNoValue;
  x = c.cast(x, dtype);
  if (real) x = c.add("where", {nan, c.constant(0, dtype), x});
  const ValueId sum = reduce(c, "reduce_sum", x, axes, keep);
  if (c.parameter() == "sum") return c.output(c.cast(sum, result));
  const ValueId count = reduce(c, "reduce_sum", c.cast(c.add("not", {nan}), dtype), axes, keep);
  c.output(c.cast(c.add("div", {sum, count}), result));
}

void map_logsumexp(Call& c) {
  const ValueId x = c.cast(c.tensor("self"), c.out_dtype());
  const Ints axes = reduced_axes(c, x);
  // Around the maximum, so that large values do not overflow.
  const bool keep = c.boolean("keepdim", false);
  if (c.rank(x) == 0) return c.output(x);
  c.output(reduce(c, "reduce_log_sum_exp", x, axes, keep));
}

void map_cumulative(Call& c) {
  const ValueId x = c.cast(c.tensor("self"), c.out_dtype());
  c.ignore({"dtype"});
  const int64_t axis = c.axis("dim", c.rank(x));
  if (c.rank(x) == 0) return c.output(x);
  c.output(c.add(c.parameter(), {x, c.constant_int(axis)}));
}

void map_cosine_similarity(Call& c) {
  ValueId a = c.tensor("x1"), b = c.tensor("x2");
  if (c.rank(a) == 0 && c.rank(b) == 0) {
    a = c.reshape(a, Ints{1});
    b = c.reshape(b, Ints{1});
  }
  const int rank = c.out_rank() + 1;
  const int64_t axis = rank == 1 && c.type(a).rank() == 1 ? 0 : c.axis("dim", rank, 1);
  const double eps = c.number("eps", 1e-8);
  const DType dtype = c.dtype_of(a);
  const ValueId floor = c.constant(eps, dtype);
  const ValueId na = c.add("max", {reduce(c, "reduce_l2", a, {axis - rank}, true), floor});
  const ValueId nb = c.add("max", {reduce(c, "reduce_l2", b, {axis - rank}, true), floor});
  const ValueId product = c.add("mul", {c.add("div", {a, na}), c.add("div", {b, nb})});
  c.output(reduce(c, "reduce_sum", product, {axis - rank}, false));
}

constexpr Mapping kMappings[] = {
    {"aten.all", map_any_all, "all"},
    {"aten.amax", map_reduce, "reduce_max"},
    {"aten.amin", map_reduce, "reduce_min"},
    {"aten.aminmax", map_aminmax, ""},
    {"aten.any", map_any_all, "any"},
    {"aten.argmax", map_arg, "arg_max"},
    {"aten.argmin", map_arg, "arg_min"},
    {"aten.cosine_similarity", map_cosine_similarity, ""},
    {"aten.count_nonzero", map_count_nonzero, ""},
    {"aten.cumprod", map_cumulative, "cum_prod"},
    {"aten.cumsum", map_cumulative, "cum_sum"},
    {"aten.linalg_vector_norm", map_vector_norm, ""},
    {"aten.logsumexp", map_logsumexp, ""},
    {"aten.max", map_extreme, "max"},
    {"aten.mean", map_reduce, "reduce_mean"},
    {"aten.min", map_extreme, "min"},
    {"aten.nanmean", map_without_nan, "mean"},
    {"aten.nansum", map_without_nan, "sum"},
    {"aten.norm", map_vector_norm, "norm"},
    {"aten.prod", map_reduce, "reduce_prod"},
    {"aten.std", map_variance, "std"},
    {"aten.std_mean", map_variance, "std_mean"},
    {"aten.sum", map_reduce, "reduce_sum"},
    {"aten.var", map_variance, "var"},
    {"aten.var_mean", map_variance, "var_mean"},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> reduce_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
