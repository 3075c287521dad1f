// Reductions, cumulative operators, and everything that orders elements.
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
  const ValueId x = c.tensor("self");
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
  if (!c.parameter().ends_with("mean")) return c.output(y);
  c.outputs({y, keep ? mean : c.squeeze(mean, axes)});
}

void map_vector_norm(Call& c) {
  const bool plain = c.parameter() == "norm";
  ValueId x = c.cast(c.tensor("self"), c.out_dtype());
  c.ignore({"dtype"});
  const double ord = c.number(plain ? "p" : "ord", 2);
  const Ints axes = reduced_axes(c, x);
  const bool keep = c.boolean("keepdim", false);
  if (c.rank(x) == 0) return c.output(c.add("abs", {x}));
  if (ord == 2) return c.output(reduce(c, "reduce_l2", x, axes, keep));
  if (ord == 1) return c.output(reduce(c, "reduce_l1", x, axes, keep));
  const DType dtype = c.dtype_of(x);
  x = c.add("abs", {x});
  if (std::isinf(ord)) return c.output(reduce(c, ord > 0 ? "reduce_max" : "reduce_min", x, axes, keep));
  if (ord == 0) {
    const ValueId present = c.cast(c.add("greater", {x, c.constant(0, dtype)}), dtype);
    return c.output(reduce(c, "reduce_sum", present, axes, keep));
  }
  const ValueId sum = reduce(c, "reduce_sum", c.add("pow", {x, c.constant(ord, dtype)}), axes, keep);
  c.output(c.add("pow", {sum, c.constant(1 / ord, dtype)}));
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
  const ValueId x = c.tensor("self");
  const Ints axes = reduced_axes(c, x);
  const bool keep = c.boolean("keepdim", false);
  c.outputs({reduce(c, "reduce_min", x, axes, keep), reduce(c, "reduce_max", x, axes, keep)});
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

void map_top_k(Call& c) {
  const ValueId x = c.tensor("self");
  const Scalar k = c.scalar("k");
  const int64_t axis = c.axis("dim", c.rank(x), -1);
  const bool largest = c.boolean("largest", true);
  c.ignore({"sorted"});
  if (c.rank(x) == 0) return c.outputs({x, c.constant_int(0)});
  c.outputs(c.add_many("top_k", {x, c.size_value(k)}, 2, {{"axis", axis}, {"largest", largest}}));
}

// A whole sort is top_k of all elements; ties keep their order, as a stable sort does.
void map_sort(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t axis = c.axis("dim", c.rank(x), -1);
  const bool descending = c.boolean("descending", false);
  c.ignore({"stable"});
  if (c.rank(x) == 0) return c.outputs({x, c.constant_int(0)});
  const std::vector<ValueId> both =
      c.add_many("top_k", {x, c.size_value(c.size_of(x, axis))}, 2, {{"axis", axis}, {"largest", descending}});
  if (c.parameter() == "arg") return c.output(both[1]);
  c.outputs(both);
}

void map_diff(Call& c) {
  ValueId x = c.tensor("self");
  const int64_t times = c.integer("n", 1), axis = c.axis("dim", c.rank(x), -1);
  const ValueId before = c.optional_tensor("prepend"), after = c.optional_tensor("append");
  if (times < 0 || times > 64) return c.fail("diff of this order", str_cat(times));
  std::vector<ValueId> parts = {x};
  if (before != kNoValue) parts.insert(parts.begin(), before);
  if (after != kNoValue) parts.push_back(after);
  x = c.concat(std::move(parts), axis);
  const bool truth = c.dtype_of(x) == DType::kBool;
  for (int64_t i = 0; i < times; ++i) {
    const ValueId high = c.slice(x, axis, Scalar::of_int(1), Scalar::of_int(INT64_MAX));
    const ValueId low = c.slice(x, axis, Scalar::of_int(0), Scalar::of_int(-1));
    x = c.add(truth ? "xor" : "sub", {high, low});
  }
  c.output(x);
}

void map_cosine_similarity(Call& c) {
  const ValueId a = c.tensor("x1"), b = c.tensor("x2");
  const int rank = c.out_rank() + 1;
  const int64_t axis = c.axis("dim", rank, 1);
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
    {"aten.argsort", map_sort, "arg"},
    {"aten.cosine_similarity", map_cosine_similarity, ""},
    {"aten.count_nonzero", map_count_nonzero, ""},
    {"aten.cumprod", map_cumulative, "cum_prod"},
    {"aten.cumsum", map_cumulative, "cum_sum"},
    {"aten.diff", map_diff, ""},
    {"aten.linalg_vector_norm", map_vector_norm, ""},
    {"aten.logsumexp", map_logsumexp, ""},
    {"aten.max", map_extreme, "max"},
    {"aten.mean", map_reduce, "reduce_mean"},
    {"aten.min", map_extreme, "min"},
    {"aten.norm", map_vector_norm, "norm"},
    {"aten.prod", map_reduce, "reduce_prod"},
    {"aten.sort", map_sort, ""},
    {"aten.std", map_variance, "std"},
    {"aten.std_mean", map_variance, "std_mean"},
    {"aten.sum", map_reduce, "reduce_sum"},
    {"aten.topk", map_top_k, ""},
    {"aten.var", map_variance, "var"},
    {"aten.var_mean", map_variance, "var_mean"},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> reduce_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
