// Everything that orders elements: sorting, the largest ones, medians, modes, running extremes, distinct elements.
#include <algorithm>
#include <array>
#include <limits>

#include "import/torch/mappings/formula.h"

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

// The most frequent element, the smallest of several, and its last place. Sorted, equals stand together: their number
// is the distance of the places before and behind them.
void map_mode(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t axis = c.axis("dim", c.rank(x), -1);
  const bool keep = c.boolean("keepdim", false);
  if (c.rank(x) == 0) return c.outputs({x, c.constant_int(0)});
  if (c.dim(x, axis) == Dim(0)) return c.fail("mode of nothing", to_string(c.type(x)));
  const int64_t last = c.rank(x) - 1;
  const DType dtype = c.dtype_of(x);
  const ValueId rows = c.swap(dtype == DType::kBool ? c.cast(x, DType::kU8) : x, axis, last);
  const ValueId sorted = top(c, rows, c.size_of(rows, last), last, false)[0];
  const ValueId counts = c.add(
      "sub", {c.add("search_sorted", {sorted, sorted}, {{"right", 1}}), c.add("search_sorted", {sorted, sorted})});
  // The first place of the largest number is that of the smallest such element.
  const ValueId at = c.add("arg_max", {counts}, {{"axis", last}});
  const ValueId value = c.add("gather_elements", {sorted, at}, {{"axis", last}});
  ValueId hits = c.add("equal", {rows, value});
  if (is_float(dtype)) hits = c.add("or", {hits, c.add("and", {c.add("is_nan", {rows}), c.add("is_nan", {value})})});
  const ValueId index = c.add("arg_max", {c.cast(hits, DType::kI32)}, {{"axis", last}, {"select_last_index", 1}});
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

/// What was not asked for is a vector of nothing, unless PyTorch gives it anyway.
ValueId unless_empty(Call& c, ValueId id, bool wanted, size_t output) {
  const TensorMeta* stated = c.meta(output);
  const bool empty = stated && stated->sizes.size() == 1 && stated->sizes[0].expression.empty() &&
                     stated->sizes[0].value == 0 && !wanted;
  return empty ? c.constant_ints({}) : id;
}

// _unique2 and unique_dim: distinct elements or slices, where each went, how often each is there
void map_unique(Call& c) {
  const ValueId x = c.tensor("self");
  const bool along = c.parameter() == "dim";
  c.ignore({"sorted"});
  const bool wants_inverse = c.boolean("return_inverse", false), wants_counts = c.boolean("return_counts", false);
  std::vector<std::pair<std::string, Attr>> attrs;
  if (is_float(c.dtype_of(x))) attrs.emplace_back("equal_nan", int64_t{0});
  if (along) attrs.emplace_back("axis", c.axis("dim", c.rank(x)));
  const std::vector<ValueId> out = c.add_node("unique", {x}, 4, std::move(attrs));
  const ValueId inverse = wants_inverse && !along ? c.reshape(out[2], c.sizes_of(x)) : out[2];
  c.outputs({out[0], unless_empty(c, inverse, wants_inverse, 1), unless_empty(c, out[3], wants_counts, 2)});
}

// Runs of equal elements, or of equal slices of an axis: one starts where it differs from the one before.
void map_unique_consecutive(Call& c) {
  const ValueId x = c.tensor("self");
  const bool wants_inverse = c.boolean("return_inverse", false), wants_counts = c.boolean("return_counts", false);
  const bool along = c.given("dim");
  const ValueId line = along ? x : c.reshape(x, Ints{-1});
  const int64_t axis = c.axis("dim", c.rank(line), 0);
  if (c.rank(line) == 0 || c.type(line).elements() == 0) return c.fail("unique_consecutive of nothing, or of a number");
  const ValueId before = c.slice(line, axis, Scalar::of_int(0), Scalar::of_int(-1));
  const ValueId behind = c.slice(line, axis, Scalar::of_int(1), Scalar::of_int(INT64_MAX));
  ValueId differs = c.add("not", {c.add("equal", {behind, before})});
  if (c.rank(line) > 1) {
    Ints others;
    for (int i = 0; i < c.rank(line); ++i) {
      if (i != axis) others.push_back(i);
    }
    differs = c.cast(c.add("reduce_max", {c.cast(differs, DType::kU8), c.constant_ints(others)}, {{"keepdims", 0}}),
                     DType::kBool);
  }
  const ValueId starts = c.concat({c.constant_int(1, DType::kBool, {1}), differs}, 0);
  const ValueId places = c.squeeze(c.add("non_zero", {starts}), {0});
  const ValueId ends = c.concat(
      {c.slice(places, 0, Scalar::of_int(1), Scalar::of_int(INT64_MAX)), c.size_value(c.size_of(line, axis))}, 0);
  const ValueId numbers = c.add("cum_sum", {c.cast(starts, DType::kI64), c.constant_int(0)});
  ValueId inverse = c.add("sub", {numbers, c.constant_int(1)});
  if (!along) inverse = c.reshape(inverse, c.sizes_of(x));
  c.outputs({c.add("compress", {line, starts}, {{"axis", axis}}), unless_empty(c, inverse, wants_inverse, 1),
             unless_empty(c, c.add("sub", {ends, places}), wants_counts, 2)});
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

/// search_sorted on one element type.
ValueId search(Call& c, ValueId sorted, ValueId values, bool right, bool unordered_nan = false) {
  return c.add("search_sorted", {sorted, values}, {{"right", right}, {"unordered_nan", unordered_nan}});
}

// isin: the tests are sorted; an element is among them where the places before and behind its equals differ
void map_is_in(Call& c) {
  const Operand elements = c.operand(c.given("element") ? "element" : "elements");
  const Operand tests = c.operand(c.given("test_element") ? "test_element" : "test_elements");
  const bool invert = c.boolean("invert", false);
  c.ignore({"assume_unique"});
  const std::array<Operand, 2> both = {elements, tests};
  DType dtype = c.promote(both);
  if (dtype == DType::kBool) dtype = DType::kU8;
  const ValueId x = c.as_tensor(elements, dtype), t = c.reshape(c.as_tensor(tests, dtype), Ints{-1});
  const ValueId sorted = top(c, t, c.size_of(t, 0), 0, false)[0];
  ValueId absent = c.add("equal", {search(c, sorted, x, false), search(c, sorted, x, true)});
  if (is_float(dtype)) absent = c.add("or", {absent, c.add("is_nan", {x})});  // NaN is not even itself
  c.output(invert ? absent : c.add("not", {absent}));
}

// How many sorted boundaries lie below (or at) each value; boundaries of several dimensions go row by row
void map_bucketize(Call& c) {
  const bool sequence = c.parameter() == "search";
  ValueId bounds = c.tensor(sequence ? "sorted_sequence" : "boundaries");
  const Operand values = c.operand("self");
  bool right = c.boolean("right", false);
  if (c.given("side")) right = c.string("side") == "right";
  c.ignore({"out_int32"});
  if (const ValueId sorter = c.optional_tensor("sorter"); sorter != kNoValue)
    bounds = c.add("gather_elements", {bounds, sorter}, {{"axis", -1}});
  const std::array<Operand, 2> both = {values, Operand{bounds, {}}};
  DType dtype = c.promote(both);
  if (dtype == DType::kBool) dtype = DType::kU8;
  c.output(c.cast(search(c, c.cast(bounds, dtype), c.as_tensor(values, dtype), right, is_float(dtype)), c.out_dtype()));
}

// bincount: the number (or the weight) of each value from 0 to the largest one. Bins are counted from the end, where
// values below 0 are outside and fail.
void map_bin_count(Call& c) {
  const ValueId x = c.cast(c.tensor("self"), DType::kI64), weights = c.optional_tensor("weights");
  const int64_t least = c.integer("minlength", 0);
  const DType dtype = c.out_dtype();
  const ValueId largest =
      c.add("reduce_max", {c.concat({x, c.constant_ints({least - 1})}, 0), c.constant_ints({0})}, {{"keepdims", 1}});
  const ValueId count = c.add("add", {largest, c.constant_int(1)});
  const ValueId bins = c.add("expand", {c.constant_int(0, dtype), count});
  const ValueId amounts =
      weights == kNoValue ? c.full({c.size_of(x, 0)}, c.constant_int(1, dtype)) : c.cast(weights, dtype);
  c.output(c.add("scatter_elements", {bins, c.add("sub", {x, count}), amounts}, {{"reduction", "add"}}));
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
