// Everything that orders elements: sorting, the largest ones, medians, modes, running extremes, distinct elements.
#include <algorithm>
#include <array>
#include <limits>

#include "import/torch/formula.h"

namespace pinnace::torch_import {
namespace {

using Ints = std::vector<int64_t>;

bool is_float(DType dtype) {
  return (dtypes(dtype) & kFloats) != 0;
}

/// top_k along an axis; bools are compared as numbers. Of a tensor without dimensions: itself.
std::vector<ValueId> top(Call& c, ValueId x, const Scalar& k, int64_t axis, bool largest) {
  if (c.rank(x) == 0) return {x, c.constant_int(0)};
  const bool truth = c.dtype_of(x) == DType::kBool;
  std::vector<ValueId> both = c.add_many("top_k", {truth ? c.cast(x, DType::kU8) : x, c.size_value(k)}, 2,
                                         {{"axis", axis}, {"largest", largest}});
  if (truth) both[0] = c.cast(both[0], DType::kBool);
  return both;
}

void map_top_k(Call& c) {
  const ValueId x = c.tensor("self");
  const Scalar k = c.scalar("k");
  const int64_t axis = c.axis("dim", c.rank(x), -1);
  const bool largest = c.boolean("largest", true);
  c.ignore({"sorted"});
  c.outputs(top(c, x, k, axis, largest));
}

// A whole sort is top_k of all elements; ties keep their order, as a stable sort does.
void map_sort(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t axis = c.parameter() == "first" ? 0 : c.axis("dim", c.rank(x), -1);
  const bool descending = c.boolean("descending", false);
  c.ignore({"stable"});
  const std::vector<ValueId> both = top(c, x, c.rank(x) ? c.size_of(x, axis) : Scalar::of_int(1), axis, descending);
  if (c.parameter() == "arg") return c.output(both[1]);
  if (c.parameter() == "first") return c.output(both[0]);
  c.outputs(both);
}

/// Element i along an axis, which stays with size 1 if `keep`.
ValueId element(Call& c, ValueId x, int64_t axis, ValueId i, bool keep) {
  if (c.rank(x) == 0) return x;
  const ValueId y = c.add("gather", {x, c.reshape(i, keep ? Ints{1} : Ints{})}, {{"axis", axis}});
  return y;
}

void map_kth_value(Call& c) {
  const ValueId x = c.tensor("self");
  const Scalar k = c.scalar("k");
  const int64_t axis = c.axis("dim", c.rank(x), -1);
  const bool keep = c.boolean("keepdim", false);
  const std::vector<ValueId> both = top(c, x, k, axis, false);
  const ValueId last = c.constant_int(-1);
  c.outputs({element(c, both[0], axis, last, keep), element(c, both[1], axis, last, keep)});
}

// median, nanmedian: the lower one of two in the middle. A NaN is the median of what holds it; nanmedian passes over
// it.
void map_median(Call& c) {
  ValueId x = c.tensor("self");
  const bool whole = !c.given("dim"), skip = c.parameter() == "nan";
  if (whole) x = c.reshape(x, Ints{-1});
  const int64_t axis = c.axis("dim", c.rank(x), 0);
  const bool keep = c.boolean("keepdim", false), real = is_float(c.dtype_of(x));
  if (c.rank(x) == 0) return c.outputs({x, c.constant_int(0)});
  const Dim length = c.dim(x, axis);
  if (whole && length == Dim(0) && real)
    return c.output(c.constant(std::numeric_limits<double>::quiet_NaN(), c.dtype_of(x)));
  const std::vector<ValueId> both = top(c, x, c.size_of(x, axis), axis, false);
  ValueId value, index;
  if (skip && real) {
    const Formula f(c, DType::kI64);
    const ValueId there = c.cast(c.add("not", {c.add("is_nan", {x})}), DType::kI64);
    const ValueId count = c.add("reduce_sum", {there, c.constant_ints({axis})});
    const ValueId at = f("max", f("div", f("sub", count, 1.0), 2.0), 0.0);
    value = c.add("gather_elements", {both[0], at}, {{"axis", axis}});
    index = c.add("gather_elements", {both[1], at}, {{"axis", axis}});
  } else {
    const Formula f(c, DType::kI64);
    const ValueId at = f("div", f("sub", c.as_tensor({kNoValue, c.size_of(x, axis)}, DType::kI64), 1.0), 2.0);
    value = element(c, both[0], axis, at, true);
    index = element(c, both[1], axis, at, true);
    if (real) {
      const ValueId nan = c.cast(c.add("is_nan", {x}), DType::kI32);
      const ValueId over = c.constant_ints({axis});
      const ValueId any = c.cast(c.add("reduce_max", {nan, over}), DType::kBool);
      value = c.add("where", {any, c.constant(std::numeric_limits<double>::quiet_NaN(), c.dtype_of(x)), value});
      index = c.add("where", {any, c.add("arg_max", {nan}, {{"axis", axis}}), index});
    }
  }
  if (!keep) {
    value = c.squeeze(value, {axis});
    index = c.squeeze(index, {axis});
  }
  if (whole) return c.output(value);
  c.outputs({value, index});
}

// The most frequent element, the smallest of several, and its last place: every element is compared with every other.
void map_mode(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t axis = c.axis("dim", c.rank(x), -1);
  const bool keep = c.boolean("keepdim", false);
  if (c.rank(x) == 0) return c.outputs({x, c.constant_int(0)});
  const Dim size = c.dim(x, axis);
  if (!size.known() || size.size < 1 || size.size > 4096)
    return c.fail("mode of this many elements", to_string(c.type(x)));
  const int64_t last = c.rank(x) - 1;
  const ValueId rows = c.swap(x, axis, last);
  const DType dtype = c.dtype_of(x);
  const ValueId numbers = dtype == DType::kBool ? c.cast(rows, DType::kU8) : rows;
  const ValueId same = c.add("equal", {c.unsqueeze(rows, {last + 1}), c.unsqueeze(rows, {last})});
  const ValueId counts =
      c.add("reduce_sum", {c.cast(same, DType::kI32), c.constant_ints({last + 1})}, {{"keepdims", 0}});
  const ValueId most = c.add("reduce_max", {counts, c.constant_ints({last})});
  // What is less frequent becomes the largest of all, and so never the smallest.
  const ValueId limit = c.add("reduce_max", {numbers, c.constant_ints({last})});
  const ValueId candidates = c.add("where", {c.add("equal", {counts, most}), numbers, limit});
  const ValueId value = c.add("reduce_min", {candidates, c.constant_ints({last})});
  const ValueId hits = c.cast(c.add("equal", {numbers, value}), DType::kI32);
  const ValueId index = c.add("arg_max", {hits}, {{"axis", last}, {"select_last_index", 1}});
  const auto back = [&](ValueId id) {
    id = c.swap(id, axis, last);
    return keep ? id : c.squeeze(id, {axis});
  };
  c.outputs({c.cast(back(value), dtype), back(index)});
}

void map_cumulative_extreme(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t axis = c.axis("dim", c.rank(x));
  if (c.rank(x) == 0) return c.outputs({x, c.constant_int(0)});
  const bool truth = c.dtype_of(x) == DType::kBool;
  std::vector<ValueId> both = c.add_many(c.parameter(), {truth ? c.cast(x, DType::kU8) : x}, 2, {{"axis", axis}});
  if (truth) both[0] = c.cast(both[0], DType::kBool);
  c.outputs(std::move(both));
}

void map_log_cumulative(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t axis = c.axis("dim", c.rank(x));
  if (c.rank(x) == 0) return c.output(x);
  c.output(c.add("log_cum_sum_exp", {x}, {{"axis", axis}}));
}

// _unique2 and unique_dim: distinct elements or slices, where each went, how often each is there
void map_unique(Call& c) {
  const ValueId x = c.tensor("self");
  const bool along = c.parameter() == "dim";
  c.ignore({"sorted"});
  const bool wants_inverse = c.boolean("return_inverse", false), wants_counts = c.boolean("return_counts", false);
  std::vector<std::pair<std::string, Attr>> attrs;
  if (along) attrs.emplace_back("axis", c.axis("dim", c.rank(x)));
  const std::vector<ValueId> out = c.add_node("unique", {x}, 4, std::move(attrs));
  // What was not asked for is a vector of nothing, unless PyTorch gives it anyway.
  const auto unless_empty = [&](ValueId id, bool wanted, size_t output) {
    const TensorMeta* stated = c.meta(output);
    const bool empty = stated && stated->sizes.size() == 1 && stated->sizes[0].expression.empty() &&
                       stated->sizes[0].value == 0 && !wanted;
    return empty ? c.constant_ints({}) : id;
  };
  const ValueId inverse = wants_inverse && !along ? c.reshape(out[2], c.sizes_of(x)) : out[2];
  c.outputs({out[0], unless_empty(inverse, wants_inverse, 1), unless_empty(out[3], wants_counts, 2)});
}

// Runs of equal elements: an element starts one where it differs from the element before.
void map_unique_consecutive(Call& c) {
  const ValueId x = c.tensor("self");
  c.ignore({"return_inverse", "return_counts"});
  if (c.given("dim") && c.rank(x) != 1) return c.fail("unique_consecutive along a dimension");
  const ValueId flat = c.reshape(x, Ints{-1});
  if (c.dim(flat, 0) == Dim(0)) return c.fail("unique_consecutive of nothing");
  const ValueId before = c.slice(flat, 0, Scalar::of_int(0), Scalar::of_int(-1));
  const ValueId behind = c.slice(flat, 0, Scalar::of_int(1), Scalar::of_int(INT64_MAX));
  const ValueId starts =
      c.concat({c.constant_int(1, DType::kBool, {1}), c.add("not", {c.add("equal", {behind, before})})}, 0);
  const ValueId places = c.squeeze(c.add("non_zero", {starts}), {0});
  const ValueId ends =
      c.concat({c.slice(places, 0, Scalar::of_int(1), Scalar::of_int(INT64_MAX)), c.size_value(c.size_of(flat, 0))}, 0);
  const ValueId numbers = c.add("cum_sum", {c.cast(starts, DType::kI64), c.constant_int(0)});
  c.outputs({c.add("compress", {flat, starts}, {{"axis", 0}}),
             c.reshape(c.add("sub", {numbers, c.constant_int(1)}), c.sizes_of(x)), c.add("sub", {ends, places})});
}

void map_diff(Call& c) {
  ValueId x = c.tensor("self");
  const int64_t times = c.integer("n", 1), axis = c.axis("dim", c.rank(x), -1);
  const ValueId before = c.optional_tensor("prepend"), after = c.optional_tensor("append");
  if (times < 0 || times > 64) return c.fail("diff of this order", str_cat(times));
  std::vector<ValueId> parts;
  const DType dtype = c.out_dtype();
  for (ValueId id : {before, x, after}) {
    if (id != kNoValue) parts.push_back(c.cast(id, dtype));
  }
  x = c.concat(std::move(parts), axis);
  const bool truth = dtype == DType::kBool;
  for (int64_t i = 0; i < times; ++i) {
    if (c.dim(x, axis) == Dim(0)) break;
    const ValueId high = c.slice(x, axis, Scalar::of_int(1), Scalar::of_int(INT64_MAX));
    const ValueId low = c.slice(x, axis, Scalar::of_int(0), Scalar::of_int(-1));
    x = c.add(truth ? "xor" : "sub", {high, low});
  }
  c.output(x);
}

// isin: every element against every test element
void map_is_in(Call& c) {
  const Operand elements = c.operand(c.given("element") ? "element" : "elements");
  const Operand tests = c.operand(c.given("test_element") ? "test_element" : "test_elements");
  const bool invert = c.boolean("invert", false);
  c.ignore({"assume_unique"});
  const std::array<Operand, 2> both = {elements, tests};
  const DType dtype = c.promote(both);
  const ValueId x = c.as_tensor(elements, dtype), t = c.reshape(c.as_tensor(tests, dtype), Ints{-1});
  const ValueId equal = c.cast(c.add("equal", {c.unsqueeze(x, {c.rank(x)}), t}), DType::kI32);
  const ValueId found = c.cast(c.add("reduce_sum", {equal, c.constant_ints({-1})}, {{"keepdims", 0}}), DType::kBool);
  c.output(invert ? c.add("not", {found}) : found);
}

// How many sorted boundaries lie below (or at) each value; boundaries of several dimensions go row by row
void map_bucketize(Call& c) {
  const bool search = c.parameter() == "search";
  ValueId bounds = c.tensor(search ? "sorted_sequence" : "boundaries");
  const Operand values = c.operand("self");
  bool right = c.boolean("right", false);
  if (c.given("side")) right = c.string("side") == "right";
  c.ignore({"out_int32"});
  if (const ValueId sorter = c.optional_tensor("sorter"); sorter != kNoValue)
    bounds = c.add("gather_elements", {bounds, sorter}, {{"axis", -1}});
  const std::array<Operand, 2> both = {values, Operand{bounds, {}}};
  const DType dtype = c.promote(both);
  const ValueId v = c.as_tensor(values, dtype);
  const int rank = c.rank(bounds);
  bounds = c.cast(bounds, dtype);
  if (rank > 1) bounds = c.unsqueeze(bounds, {rank - 1});
  const ValueId wide = c.unsqueeze(v, {c.rank(v)});
  // NaN is behind every number: a boundary is below a value unless the value is below it.
  ValueId below = right ? c.add("not", {c.add("less", {wide, bounds})}) : c.add("less", {bounds, wide});
  if (is_float(dtype)) {
    const ValueId value_nan = c.add("is_nan", {wide}), bound_nan = c.add("is_nan", {bounds});
    below = c.add("or", {c.add("and", {below, c.add("not", {bound_nan})}),
                         right ? value_nan : c.add("and", {value_nan, c.add("not", {bound_nan})})});
  }
  const ValueId count = c.add("reduce_sum", {c.cast(below, DType::kI64), c.constant_ints({-1})}, {{"keepdims", 0}});
  c.output(c.cast(count, c.out_dtype()));
}

// bincount: the number (or the weight) of each value from 0 to the largest one
void map_bin_count(Call& c) {
  const ValueId x = c.cast(c.tensor("self"), DType::kI64), weights = c.optional_tensor("weights");
  const int64_t least = c.integer("minlength", 0);
  const ValueId largest =
      c.add("reduce_max", {c.concat({x, c.constant_ints({least - 1})}, 0), c.constant_ints({0})}, {{"keepdims", 0}});
  const ValueId bins =
      c.add("range", {c.constant_int(0), c.add("add", {largest, c.constant_int(1)}), c.constant_int(1)});
  const ValueId hits = c.add("equal", {bins, c.unsqueeze(x, {1})});
  const DType dtype = c.out_dtype();
  ValueId amounts = c.cast(hits, dtype);
  if (weights != kNoValue) amounts = c.add("mul", {amounts, c.unsqueeze(c.cast(weights, dtype), {1})});
  c.output(c.add("reduce_sum", {amounts, c.constant_ints({0})}, {{"keepdims", 0}}));
}

constexpr Mapping kMappings[] = {
    {"aten._unique2", map_unique, ""},
    {"aten.argsort", map_sort, "arg"},
    {"aten.bincount", map_bin_count, ""},
    {"aten.bucketize", map_bucketize, ""},
    {"aten.cummax", map_cumulative_extreme, "cum_max"},
    {"aten.cummin", map_cumulative_extreme, "cum_min"},
    {"aten.diff", map_diff, ""},
    {"aten.isin", map_is_in, ""},
    {"aten.kthvalue", map_kth_value, ""},
    {"aten.logcumsumexp", map_log_cumulative, ""},
    {"aten.median", map_median, ""},
    {"aten.mode", map_mode, ""},
    {"aten.msort", map_sort, "first"},
    {"aten.nanmedian", map_median, "nan"},
    {"aten.searchsorted", map_bucketize, "search"},
    {"aten.sort", map_sort, ""},
    {"aten.topk", map_top_k, ""},
    {"aten.unique_consecutive", map_unique_consecutive, ""},
    {"aten.unique_dim", map_unique, "dim"},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> ordering_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
