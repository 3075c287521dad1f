// Pools, also adaptive ones. A missing batch dimension is added and taken away again.
#include <algorithm>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

using Ints = std::vector<int64_t>;

struct Batched {
  ValueId x;
  bool single;
  size_t spatial;
};

/// x as [N, C, ...]; the parameter's first character is the number of spatial dimensions.
Batched batched(Call& c) {
  const ValueId x = c.tensor(c.parameter().ends_with("input") ? "input" : "self");
  const size_t spatial = static_cast<size_t>(c.parameter()[0] - '0');
  const int rank = c.rank(x), whole = static_cast<int>(spatial) + 2;
  if (rank != whole && rank != whole - 1) {
    c.fail("a pool of this rank", str_cat(rank));
    return {x, false, spatial};
  }
  const bool single = rank == whole - 1;
  return {single ? c.unsqueeze(x, {0}) : x, single, spatial};
}

ValueId unbatched(Call& c, ValueId y, const Batched& b) {
  return b.single ? c.squeeze(y, {0}) : y;
}

Ints twice(Ints list) {
  const Ints copy = list;
  list.insert(list.end(), copy.begin(), copy.end());
  return std::all_of(list.begin(), list.end(), [](int64_t n) { return n == 0; }) ? Ints() : list;
}

Ints unless_ones(Ints list) {
  return std::all_of(list.begin(), list.end(), [](int64_t n) { return n == 1; }) ? Ints() : list;
}

void map_max_pool(Call& c) {
  const Batched b = batched(c);
  if (!c.ok()) return;
  const Ints kernel = c.ints("kernel_size", b.spatial, 1);
  Ints stride = c.ints("stride");
  stride = stride.empty() ? kernel : c.ints("stride", b.spatial, 1);
  const Ints padding = c.ints("padding", b.spatial, 0), dilation = c.ints("dilation", b.spatial, 1);
  std::vector<std::pair<std::string, Attr>> attrs = {{"ceil_mode", int64_t{c.boolean("ceil_mode", false)}},
                                                     {"dilations", unless_ones(dilation)},
                                                     {"kernel_shape", kernel},
                                                     {"pads", twice(padding)},
                                                     {"strides", unless_ones(stride)}};
  if (!c.meta(1)) return c.output(unbatched(c, c.add_node("max_pool", {b.x}, 1, attrs)[0], b));
  // Ours count places through the whole tensor, PyTorch's through one plane.
  const std::vector<ValueId> both = c.add_node("max_pool", {b.x}, c.reads(1) ? 2 : 1, std::move(attrs));
  if (!c.reads(1)) return c.outputs({unbatched(c, both[0], b), kNoValue});
  Scalar plane = Scalar::of_int(1);
  for (size_t i = 0; i < b.spatial; ++i) plane = c.multiply_sizes(plane, c.size_of(b.x, static_cast<int64_t>(i) + 2));
  const ValueId places = c.add("mod", {both[1], c.as_tensor({kNoValue, plane}, DType::kI64)});
  c.outputs({unbatched(c, both[0], b), unbatched(c, places, b)});
}

void map_avg_pool(Call& c) {
  const Batched b = batched(c);
  if (!c.ok()) return;
  const Ints kernel = c.ints("kernel_size", b.spatial, 1);
  Ints stride = c.ints("stride");
  stride = stride.empty() ? kernel : c.ints("stride", b.spatial, 1);
  const Ints padding = c.ints("padding", b.spatial, 0);
  const bool include = c.boolean("count_include_pad", true), ceil = c.boolean("ceil_mode", false);
  ValueId y = c.add("average_pool", {b.x},
                    {{"ceil_mode", ceil},
                     {"count_include_pad", include},
                     {"kernel_shape", kernel},
                     {"pads", twice(padding)},
                     {"strides", unless_ones(stride)}});
  if (c.given("divisor_override")) {
    const int64_t divisor = c.integer("divisor_override");
    double cells = 1;
    for (int64_t n : kernel) cells *= static_cast<double>(n);
    if (divisor == 0 || ceil || (!include && !twice(padding).empty()))
      return c.fail("divisor_override with ceil_mode or uncounted padding", str_cat(divisor));
    y = c.add("mul", {y, c.constant(cells / static_cast<double>(divisor), c.dtype_of(y))});
  }
  c.output(unbatched(c, y, b));
}

void map_adaptive_avg_pool(Call& c) {
  const Batched b = batched(c);
  const std::vector<Scalar> given = c.sizes("output_size");
  if (!c.ok()) return;
  std::vector<Scalar> wanted;
  Ints size;
  for (size_t i = 0; i < b.spatial; ++i) {
    const Scalar& s = given.size() == 1 ? given[0] : given.size() == b.spatial ? given[i] : Scalar::of_int(-1);
    if (s.known && s.integer < 1) return c.fail("adaptive pool to this size", str_cat(s.integer));
    wanted.push_back(s);
    if (s.known) size.push_back(s.integer);
  }
  if (size.size() < b.spatial) {
    return c.output(unbatched(c, c.add("adaptive_average_pool", {b.x, c.size_values(wanted)}), b));
  }
  const bool one = unless_ones(size).empty();
  const ValueId y =
      one ? c.add("global_average_pool", {b.x}) : c.add("adaptive_average_pool", {b.x}, {{"output_size", size}});
  c.output(unbatched(c, y, b));
}

constexpr Mapping kMappings[] = {
    {"aten._adaptive_avg_pool2d", map_adaptive_avg_pool, "2"},
    {"aten._adaptive_avg_pool3d", map_adaptive_avg_pool, "3"},
    {"aten.adaptive_avg_pool1d", map_adaptive_avg_pool, "1"},
    {"aten.adaptive_avg_pool2d", map_adaptive_avg_pool, "2"},
    {"aten.adaptive_avg_pool3d", map_adaptive_avg_pool, "3"},
    {"aten.avg_pool1d", map_avg_pool, "1"},
    {"aten.avg_pool2d", map_avg_pool, "2"},
    {"aten.avg_pool3d", map_avg_pool, "3"},
    {"aten.max_pool1d", map_max_pool, "1"},
    {"aten.max_pool1d_with_indices", map_max_pool, "1"},
    {"aten.max_pool2d", map_max_pool, "2"},
    {"aten.max_pool2d_with_indices", map_max_pool, "2"},
    {"aten.max_pool3d", map_max_pool, "3"},
    {"aten.max_pool3d_with_indices", map_max_pool, "3"},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> pooling_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
