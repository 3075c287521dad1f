// Operators that move elements into a new tensor: cat, stack, repeat, flip, roll, pad, pixel_shuffle, triangles.
#include <algorithm>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

void map_cat(Call& c) {
  const DType dtype = c.out_dtype();
  std::vector<ValueId> parts;
  const std::vector<ValueId> given = c.tensors("tensors");
  const int rank = c.out_rank();
  for (ValueId id : given) {
    // PyTorch skips empty vectors whatever the others' rank.
    if (rank > 1 && c.rank(id) == 1 && c.dim(id, 0) == Dim(0)) continue;
    parts.push_back(c.cast(id, dtype));
  }
  c.output(c.concat(std::move(parts), c.axis(c.parameter() == "axis" ? "axis" : "dim", rank, 0)));
}

void map_stack(Call& c) {
  const DType dtype = c.out_dtype();
  const int64_t axis = c.axis("dim", c.out_rank(), 0);
  std::vector<ValueId> parts;
  for (ValueId id : c.tensors("tensors")) parts.push_back(c.unsqueeze(c.cast(id, dtype), {axis}));
  c.output(c.concat(std::move(parts), axis));
}

// hstack, vstack: cat along axis 1 (0 for vectors), 0
void map_joined(Call& c) {
  std::vector<ValueId> parts;
  const bool vertical = c.parameter() == "v";
  for (ValueId id : c.tensors("tensors")) {
    ValueId part = c.cast(id, c.out_dtype());
    if (c.rank(part) == 0) part = c.unsqueeze(part, {0});
    if (vertical && c.rank(part) == 1) part = c.unsqueeze(part, {0});
    parts.push_back(part);
  }
  const int64_t axis = !vertical && c.out_rank() > 1 ? 1 : 0;
  c.output(c.concat(std::move(parts), axis));
}

void map_repeat(Call& c) {
  ValueId x = c.tensor("self");
  std::vector<Scalar> repeats = c.sizes(c.parameter() == "tile" ? "dims" : "repeats");
  std::vector<int64_t> axes;
  for (int64_t i = c.rank(x); i < static_cast<int64_t>(repeats.size()); ++i) axes.push_back(i - c.rank(x));
  x = c.unsqueeze(x, axes);
  while (static_cast<int>(repeats.size()) < c.rank(x)) repeats.insert(repeats.begin(), Scalar::of_int(1));
  if (repeats.empty()) return c.output(x);
  if (c.is_pair(x)) repeats.push_back(Scalar::of_int(1));
  c.output(c.paired_like(x, c.add("tile", {x, c.size_values(repeats)})));
}

// repeat_interleave by a number: a new axis is expanded and folded. By a tensor: element i of the result is of the part
// whose end, counted in repeats, is the first one behind i.
void map_repeat_interleave(Call& c) {
  const Operand repeats = c.operand("repeats");
  c.ignore({"output_size"});
  const bool places = !c.given("self");
  ValueId x = places ? repeats.tensor : c.tensor("self");
  if (!c.given("dim")) x = c.reshape(x, std::vector<int64_t>{-1});
  const int64_t axis = c.axis("dim", c.rank(x), 0);
  if (!c.ok()) return;
  std::vector<Scalar> sizes = c.sizes_of(x);
  const bool single = repeats.is_tensor() && (c.rank(repeats.tensor) == 0 || c.dim(repeats.tensor, 0) == Dim(1));
  if (c.rank(x) == 0) {
    x = c.reshape(x, std::vector<int64_t>{1});
    sizes = c.sizes_of(x);
  }
  if (repeats.is_tensor() && (places || !single)) {
    const ValueId ends = c.add("cum_sum", {c.cast(repeats.tensor, DType::kI64), c.constant_int(0)});
    const ValueId total = c.dim(ends, 0) == Dim(0) ? c.constant_int(0) : c.add("gather", {ends, c.constant_int(-1)});
    const ValueId numbers = c.add("range", {c.constant_int(0), total, c.constant_int(1)});
    const ValueId index = c.add("search_sorted", {ends, numbers}, {{"right", 1}});
    return c.output(places ? index : c.add("gather", {x, index}, {{"axis", axis}}));
  }
  Scalar times = repeats.scalar;
  if (repeats.is_tensor()) {
    const ValueId number = c.cast(c.reshape(repeats.tensor, std::vector<int64_t>{1}), DType::kI64);
    times = Scalar::of_value(Scalar::Kind::kInt, number);
  }
  std::vector<Scalar> wide(sizes.size(), Scalar::of_int(-1));
  wide.insert(wide.begin() + axis + 1, times);
  const ValueId repeated = c.expand(c.unsqueeze(x, {axis + 1}), wide);
  sizes[static_cast<size_t>(axis)] = c.multiply_sizes(sizes[static_cast<size_t>(axis)], times);
  c.output(c.reshape(repeated, sizes));
}

void map_flip(Call& c) {
  const ValueId x = c.tensor("self");
  std::vector<int64_t> axes;
  if (c.parameter() == "lr") {
    axes = {1};
  } else if (c.parameter() == "ud") {
    axes = {0};
  } else {
    axes = c.axes("dims", c.rank(x), false);
  }
  if (axes.empty()) return c.output(x);
  const size_t count = axes.size();
  const std::vector<int64_t> backwards(count, -1);
  const ValueId y =
      c.add("slice", {x, c.constant_ints(backwards), c.constant_ints(std::vector<int64_t>(count, INT64_MIN)),
                      c.constant_ints(axes), c.constant_ints(backwards)});
  c.output(c.paired_like(x, y));
}

void map_roll(Call& c) {
  ValueId x = c.tensor("self");
  const std::vector<int64_t> shifts = c.ints("shifts"), dims = c.ints("dims");
  const bool flat = dims.empty();
  if (!c.ok()) return;
  if ((flat && shifts.size() != 1) || (!flat && dims.size() != shifts.size())) return c.fail("roll with unequal lists");
  const std::vector<Scalar> sizes = c.sizes_of(x);
  if (flat) x = c.reshape(x, std::vector<int64_t>{-1});
  for (size_t i = 0; i < shifts.size(); ++i) {
    const int64_t rank = c.rank(x), axis = flat ? 0 : dims[i] < 0 ? dims[i] + rank : dims[i];
    if (axis < 0 || axis >= rank) return c.fail("dims is outside the rank", str_cat(axis));
    const Dim size = c.dim(x, axis);
    if (size == Dim(0)) continue;
    int64_t shift = shifts[i];
    if (size.known()) shift = ((shift % size.size) + size.size) % size.size;
    if (shift == 0) continue;
    // The last `shift` elements come first. With a symbolic size |shift| must not exceed it, which slices cannot check.
    if (!size.known()) return c.fail("roll of a symbolic dimension");
    const Scalar cut = Scalar::of_int(size.size - shift);
    x = c.concat({c.slice(x, axis, cut, Scalar::of_int(INT64_MAX)), c.slice(x, axis, Scalar::of_int(0), cut)}, axis);
  }
  c.output(flat ? c.reshape(x, sizes) : x);
}

// Pads in PyTorch's order (last axis first, low and high) become [low..., high...] over all axes.
void map_pad(Call& c) {
  ValueId x = c.tensor("self");
  const std::vector<Scalar> pad = c.sizes(c.parameter() == "pad" || c.parameter() == "constant" ? "pad" : "padding");
  std::string mode = c.parameter() == "pad" ? c.string("mode", "constant") : std::string(c.parameter());
  const int rank = c.rank(x);
  const DType dtype = c.dtype_of(x);
  Operand value;
  if (c.given("value")) value = c.operand("value");
  if (!c.ok()) return;
  if (pad.size() % 2 || pad.size() > 2 * static_cast<size_t>(rank))
    return c.fail("pad of this length", str_cat(pad.size()));
  std::vector<Scalar> low(static_cast<size_t>(rank), Scalar::of_int(0)), high = low;
  bool any = false, negative = false;
  for (size_t i = 0; i < pad.size(); ++i) {
    const size_t axis = static_cast<size_t>(rank) - 1 - i / 2;
    (i % 2 ? high : low)[axis] = pad[i];
    any |= !pad[i].is(0);
    negative |= pad[i].known && pad[i].integer < 0;
  }
  if (!any) return c.output(x);
  if (negative && mode != "constant") return c.fail("negative padding with mode", mode);
  if (c.is_pair(x)) {
    if (value.is_tensor() || !value.scalar.known || value.scalar.number() != 0)
      return c.fail("padding of a complex tensor with a value that is not 0");
    low.push_back(Scalar::of_int(0));
    high.push_back(Scalar::of_int(0));
  }
  std::vector<Scalar> pads = low;
  pads.insert(pads.end(), high.begin(), high.end());
  const std::string name = mode == "constant"    ? "constant"
                           : mode == "reflect"   ? "reflect"
                           : mode == "replicate" ? "edge"
                           : mode == "circular"  ? "wrap"
                                                 : "";
  if (name.empty()) return c.fail("padding mode", mode);
  c.output(
      c.paired_like(x, c.add("pad", {x, c.size_values(pads), name == "constant" ? c.as_tensor(value, dtype) : kNoValue},
                             {{"mode", name}})));
}

void map_channel_shuffle(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t groups = c.integer("groups");
  const Dim channels = c.dim(x, 1);
  if (c.rank(x) < 3 || !channels.known() || groups < 1 || channels.size % groups) return c.fail("channel_shuffle");
  const std::vector<Scalar> sizes = c.sizes_of(x);
  std::vector<Scalar> grouped = sizes;
  grouped[1] = Scalar::of_int(groups);
  grouped.insert(grouped.begin() + 2, Scalar::of_int(channels.size / groups));
  c.output(c.reshape(c.swap(c.reshape(x, grouped), 1, 2), sizes));
}

void map_triangle(Call& c) {
  const ValueId x = c.tensor("self");
  const ValueId k = c.constant_int(c.integer("diagonal", 0));
  const bool upper = c.parameter() == "upper";
  if (c.dtype_of(x) == DType::kBool) {
    return c.output(c.cast(c.add("trilu", {c.cast(x, DType::kU8), k}, {{"upper", upper}}), DType::kBool));
  }
  c.output(c.add("trilu", {x, k}, {{"upper", upper}}));
}

// base with one index, or a range, of an axis replaced
void map_scatter_view(Call& c) {
  const ValueId base = c.tensor("self"), source = paired(c, base, c.cast(c.tensor("src"), c.dtype_of(base)));
  const int64_t axis = c.axis("dim", c.rank(base), 0);
  const Dim size = c.dim(base, axis);
  const auto settle = [&](Scalar s) {
    if (s.known && s.integer < 0) {
      if (!size.known()) c.fail("an index from the end of a symbolic dimension");
      s.integer = std::max<int64_t>(0, s.integer + size.size);
    }
    if (s.known && size.known()) s.integer = std::min(s.integer, size.size);
    return s;
  };
  Scalar start, end;
  ValueId part = source;
  if (c.parameter() == "select") {
    start = settle(c.scalar("index"));
    end = c.add_sizes(start, Scalar::of_int(1));
    part = c.unsqueeze(source, {axis});
  } else {
    start = settle(c.scalar("start", Scalar::of_int(0)));
    end = settle(c.scalar("end", Scalar::of_int(INT64_MAX)));
    if (start.known && end.known && end.integer < start.integer) end = start;
    const int64_t step = c.integer("step", 1);
    if (step != 1) {
      if (!size.known() || !start.known || !end.known || step < 1)
        return c.fail("slice_scatter with a step of a symbolic dimension");
      if (size.size > (1 << 22)) return c.fail("slice_scatter with a step in this many elements", str_cat(size.size));
      std::vector<int64_t> from;
      int64_t next = size.size;
      for (int64_t i = 0; i < size.size; ++i) {
        from.push_back(i >= start.integer && i < end.integer && (i - start.integer) % step == 0 ? next++ : i);
      }
      return c.output(c.gather(c.concat({base, source}, axis), c.constant_ints(from), axis));
    }
  }
  std::vector<ValueId> parts;
  if (!start.is(0)) parts.push_back(c.slice(base, axis, Scalar::of_int(0), start));
  parts.push_back(part);
  const bool to_end = end.known && (end.integer == INT64_MAX || (size.known() && end.integer >= size.size));
  if (!to_end) parts.push_back(c.slice(base, axis, end, Scalar::of_int(INT64_MAX)));
  c.output(c.concat(std::move(parts), axis));
}

void map_meshgrid(Call& c) {
  std::vector<ValueId> given = c.tensors("tensors"), out;
  const bool xy = c.string("indexing", "ij") == "xy" && given.size() > 1;
  if (xy) std::swap(given[0], given[1]);
  std::vector<Scalar> sizes;
  for (ValueId id : given) sizes.push_back(c.rank(id) ? c.size_of(id, 0) : Scalar::of_int(1));
  for (size_t i = 0; i < given.size() && c.ok(); ++i) {
    std::vector<Scalar> shape(given.size(), Scalar::of_int(1));
    shape[i] = sizes[i];
    out.push_back(c.expand(c.reshape(given[i], shape), sizes));
  }
  if (xy && c.ok()) std::swap(out[0], out[1]);
  c.shares(Sharing::kView);
  c.outputs(std::move(out));
}

void map_rot90(Call& c) {
  ValueId x = c.tensor("self");
  const int64_t k = ((c.integer("k", 1) % 4) + 4) % 4;
  std::vector<int64_t> dims = c.ints("dims");
  if (dims.empty()) dims = {0, 1};
  if (dims.size() != 2) return c.fail("rot90 needs two dims");
  const auto flip = [&](ValueId v, int64_t axis) {
    return c.add("slice", {v, c.constant_ints({-1}), c.constant_ints({INT64_MIN}), c.constant_ints({axis}),
                           c.constant_ints({-1})});
  };
  if (k == 2) x = flip(flip(x, dims[0]), dims[1]);
  if (k == 1) x = c.swap(flip(x, dims[1]), dims[0], dims[1]);
  if (k == 3) x = flip(c.swap(x, dims[0], dims[1]), dims[1]);
  c.output(x);
}

constexpr Mapping kMappings[] = {
    {"aten.cat", map_cat, ""},
    {"aten.channel_shuffle", map_channel_shuffle, ""},
    {"aten.concat", map_cat, ""},
    {"aten.concatenate", map_cat, "axis"},
    {"aten.constant_pad_nd", map_pad, "constant"},
    {"aten.flip", map_flip, ""},
    {"aten.fliplr", map_flip, "lr"},
    {"aten.flipud", map_flip, "ud"},
    {"aten.hstack", map_joined, "h"},
    {"aten.meshgrid", map_meshgrid, ""},
    {"aten.pad", map_pad, "pad"},
    {"aten.reflection_pad1d", map_pad, "reflect"},
    {"aten.reflection_pad2d", map_pad, "reflect"},
    {"aten.reflection_pad3d", map_pad, "reflect"},
    {"aten.repeat", map_repeat, ""},
    {"aten.repeat_interleave", map_repeat_interleave, ""},
    {"aten.replication_pad1d", map_pad, "replicate"},
    {"aten.replication_pad2d", map_pad, "replicate"},
    {"aten.replication_pad3d", map_pad, "replicate"},
    {"aten.roll", map_roll, ""},
    {"aten.rot90", map_rot90, ""},
    {"aten.select_scatter", map_scatter_view, "select"},
    {"aten.slice_scatter", map_scatter_view, ""},
    {"aten.stack", map_stack, ""},
    {"aten.tile", map_repeat, "tile"},
    {"aten.tril", map_triangle, "lower"},
    {"aten.triu", map_triangle, "upper"},
    {"aten.vstack", map_joined, "v"},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> movement_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
