// Reading and writing by index: gather, scatter, embedding, x[i, :, j], x[mask], x[i] = v.
#include <algorithm>
#include <cmath>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

using Ints = std::vector<int64_t>;

ValueId index64(Call& c, ValueId id) {
  return c.dtype_of(id) == DType::kI32 ? id : c.cast(id, DType::kI64);
}

void map_gather(Call& c) {
  const ValueId x = c.tensor("self"), index = c.tensor("index");
  c.ignore({"sparse_grad"});
  const int64_t axis = c.axis("dim", c.rank(x));
  if (c.rank(x) == 0) return c.output(c.rank(index) == 0 ? x : c.expand(x, c.sizes_of(index)));
  if (c.type(index).elements() == 0) return c.output(c.full(c.sizes_of(index), c.constant_int(0, c.dtype_of(x))));
  c.output(c.add("gather_elements", {x, index64(c, index)}, {{"axis", axis}}));
}

void map_take_along_dim(Call& c) {
  ValueId x = c.tensor("self"), index = c.tensor("indices");
  if (!c.given("dim")) return c.output(c.add("gather", {c.reshape(x, Ints{-1}), c.reshape(index, Ints{-1})}));
  const int64_t axis = c.axis("dim", c.rank(x));
  std::vector<Scalar> x_sizes, index_sizes;
  for (int i = 0; i < c.rank(x); ++i) {
    const bool indexed = i == axis;
    x_sizes.push_back(indexed || c.dim(x, i) != Dim(1) ? Scalar::of_int(-1) : c.size_of(index, i));
    index_sizes.push_back(indexed || c.dim(index, i) != Dim(1) ? Scalar::of_int(-1) : c.size_of(x, i));
  }
  c.output(
      c.add("gather_elements", {c.expand(x, x_sizes), index64(c, c.expand(index, index_sizes))}, {{"axis", axis}}));
}

void map_index_select(Call& c) {
  ValueId x = c.tensor("self");
  ValueId index = c.tensor("index");
  const int64_t axis = c.axis("dim", c.rank(x));
  if (c.rank(x) == 0) return c.output(x);
  if (c.rank(index) == 0) index = c.unsqueeze(index, {0});
  c.output(c.gather(x, index64(c, index), axis));
}

void map_embedding(Call& c) {
  const ValueId weight = c.tensor("weight"), indices = c.tensor("indices");
  c.ignore({"padding_idx", "scale_grad_by_freq", "sparse"});
  c.output(c.add("gather", {weight, index64(c, indices)}));
}

/// Index tensors of x[...] with masks turned into index vectors; `axes[i]` is where indices[i] applies.
struct Indices {
  std::vector<ValueId> tensors;
  Ints axes;
  bool adjacent = true;
  bool from_mask = false;
};

Indices read_indices(Call& c, ValueId x) {
  Indices r;
  int64_t axis = 0;
  for (ValueId id : c.tensors("indices")) {
    if (id == kNoValue) {
      ++axis;
      continue;
    }
    if (c.dtype_of(id) == DType::kU8) id = c.cast(id, DType::kBool);
    if (c.dtype_of(id) == DType::kBool) {
      const int rank = c.rank(id);
      if (rank == 0) {
        c.fail("a mask without dimensions as index");
        return r;
      }
      const ValueId found = c.add("non_zero", {id});
      for (int i = 0; i < rank; ++i) {
        r.tensors.push_back(c.squeeze(c.slice(found, 0, Scalar::of_int(i), Scalar::of_int(i + 1)), {0}));
        r.axes.push_back(axis++);
      }
      r.from_mask = true;
      continue;
    }
    r.tensors.push_back(c.cast(id, DType::kI64));
    r.axes.push_back(axis++);
  }
  if (axis > c.rank(x) || r.tensors.empty()) c.fail("indices do not fit the rank", str_cat(axis, " for ", c.rank(x)));
  for (size_t i = 1; i < r.axes.size(); ++i) r.adjacent &= r.axes[i] == r.axes[i - 1] + 1;
  return r;
}

/// All index tensors in one, [..., m]: what gather_nd and scatter_nd take.
ValueId stacked(Call& c, const Indices& r) {
  size_t widest = 0;
  for (ValueId id : r.tensors) widest = std::max(widest, c.type(id).shape.size());
  ValueId shape_of = kNoValue;  // the broadcast of all
  bool equal = true;
  for (ValueId id : r.tensors) equal = equal && c.type(id).shape == c.type(r.tensors[0]).shape;
  if (!equal) {
    shape_of = r.tensors[0];
    for (size_t i = 1; i < r.tensors.size(); ++i) shape_of = c.add("add", {shape_of, r.tensors[i]});
  }
  std::vector<ValueId> parts;
  for (ValueId id : r.tensors) {
    const ValueId wide = equal ? id : c.expand(id, c.sizes_of(shape_of));
    parts.push_back(c.unsqueeze(wide, {static_cast<int64_t>(widest)}));
  }
  return c.concat(std::move(parts), static_cast<int64_t>(widest));
}

/// Order of axes that puts the indexed ones first.
Ints indexed_first(const Indices& r, int rank) {
  Ints order = r.axes;
  for (int64_t i = 0; i < rank; ++i) {
    if (std::find(r.axes.begin(), r.axes.end(), i) == r.axes.end()) order.push_back(i);
  }
  return order;
}

/// Where the dimensions of the index stand in the result, and the order that brings [index..., rest...] there.
Ints result_order(const Indices& r, int index_rank, int rank) {
  const int rest = rank - static_cast<int>(r.axes.size());
  const int before = r.adjacent ? static_cast<int>(r.axes[0]) : 0;
  Ints order;
  for (int i = 0; i < before; ++i) order.push_back(index_rank + i);
  for (int i = 0; i < index_rank; ++i) order.push_back(i);
  for (int i = before; i < rest; ++i) order.push_back(index_rank + i);
  return order;
}

void map_index(Call& c) {
  const ValueId x = c.tensor("self");
  const Indices r = read_indices(c, x);
  if (!c.ok()) return;
  if (r.tensors.size() == 1) return c.output(c.gather(x, r.tensors[0], r.axes[0]));
  const int rank = c.rank(x);
  const ValueId index = stacked(c, r);
  const ValueId found = c.paired_like(x, c.add("gather_nd", {c.transpose(x, indexed_first(r, rank)), index}));
  c.output(c.transpose(found, result_order(r, c.rank(index) - 1, rank)));
}

/// scatter_nd; bools that add up are true where any is.
ValueId scatter_rows(Call& c, ValueId x, ValueId index, ValueId values, bool accumulate) {
  if (!accumulate) return c.add("scatter_nd", {x, index, values});
  const DType dtype = c.dtype_of(x);
  if (dtype != DType::kBool) return c.add("scatter_nd", {x, index, values}, {{"reduction", "add"}});
  const ValueId put =
      c.add("scatter_nd", {c.cast(x, DType::kU8), index, c.cast(values, DType::kU8)}, {{"reduction", "max"}});
  return c.cast(put, dtype);
}

void map_index_put(Call& c) {
  const ValueId x = c.tensor("self");
  ValueId values = paired(c, x, c.cast(c.tensor("values"), c.dtype_of(x)));
  const bool accumulate = c.boolean("accumulate", false);
  c.ignore({"unsafe"});
  const std::vector<ValueId> given = c.tensors("indices");
  if (!c.ok()) return;
  const int rank = c.rank(x);
  // x[mask] = number: a choice, no indices needed
  const bool number = c.rank(values) == 0 || (c.rank(values) == 1 && c.dim(values, 0) == Dim(1));
  if (!accumulate && number && given.size() == 1 && given[0] != kNoValue && c.dtype_of(given[0]) == DType::kBool) {
    Ints behind;
    for (int i = c.rank(given[0]); i < c.type(x).rank(); ++i) behind.push_back(i);
    const ValueId mask = c.unsqueeze(given[0], behind);
    const ValueId y = c.add("where", {mask, c.rank(values) ? c.reshape(values, Ints{}) : values, x});
    return c.output(c.paired_like(x, y));
  }
  const Indices r = read_indices(c, x);
  if (!c.ok()) return;
  const ValueId index = stacked(c, r);
  const int index_rank = c.rank(index) - 1;
  const Ints first = indexed_first(r, rank), order = result_order(r, index_rank, rank);
  // The shape of x[indices]: [index..., rest...] in the result's order.
  std::vector<Scalar> sizes, in_order;
  for (int i = 0; i < index_rank; ++i) sizes.push_back(c.size_of(index, i));
  for (size_t i = r.axes.size(); i < first.size(); ++i) sizes.push_back(c.size_of(x, first[i]));
  for (int64_t at : order) in_order.push_back(sizes[static_cast<size_t>(at)]);
  while (c.rank(values) > static_cast<int>(in_order.size()) && c.dim(values, 0) == Dim(1))
    values = c.squeeze(values, {0});
  values = c.expand(values, in_order);
  Ints back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  values = c.transpose(values, back);
  const ValueId moved = c.transpose(x, first);
  const ValueId put = c.paired_like(x, scatter_rows(c, moved, index, values, accumulate));
  Ints undo(first.size());
  for (size_t i = 0; i < first.size(); ++i) undo[static_cast<size_t>(first[i])] = static_cast<int64_t>(i);
  c.output(c.transpose(put, undo));
}

void map_nonzero(Call& c) {
  const ValueId found = c.add("non_zero", {c.tensor("self")});  // [rank, n]
  if (c.parameter() == "tuple") {
    std::vector<ValueId> rows;
    for (int i = 0; i < std::max(c.rank(c.tensor("self")), 1); ++i)
      rows.push_back(c.squeeze(c.slice(found, 0, Scalar::of_int(i), Scalar::of_int(i + 1)), {0}));
    return c.outputs(std::move(rows));
  }
  c.output(c.swap(found, 0, 1));
}

// The first `size` places, and fill_value behind them where there are fewer
void map_nonzero_static(Call& c) {
  const ValueId x = c.tensor("self");
  const Scalar size = c.scalar("size");
  const int64_t fill = c.integer("fill_value", -1);
  const ValueId found = c.swap(c.add("non_zero", {x}), 0, 1);
  const ValueId filled = c.full({size, Scalar::of_int(c.rank(x))}, c.constant_int(fill));
  c.output(c.slice(c.concat({found, filled}, 0), 0, Scalar::of_int(0), size));
}

/// Sizes of what two tensors broadcast to.
std::vector<Scalar> broadcast(Call& c, ValueId a, ValueId b) {
  if (c.rank(a) < c.rank(b)) std::swap(a, b);
  std::vector<Scalar> sizes = c.sizes_of(a);
  const int added = c.rank(a) - c.rank(b);
  for (int i = 0; i < c.rank(b); ++i) {
    if (c.dim(b, i) != Dim(1)) sizes[static_cast<size_t>(i) + static_cast<size_t>(added)] = c.size_of(b, i);
  }
  return sizes;
}

void map_masked_select(Call& c) {
  ValueId x = c.tensor("self"), mask = c.tensor("mask");
  if (c.type(x).shape != c.type(mask).shape) {
    const std::vector<Scalar> sizes = broadcast(c, x, mask);
    x = c.expand(x, sizes);
    mask = c.expand(mask, sizes);
  }
  c.output(c.add("compress", {c.reshape(x, Ints{-1}), c.reshape(mask, Ints{-1})}, {{"axis", 0}}));
}

// Where the mask holds, the next element of source: the number of places before says which.
void map_masked_scatter(Call& c) {
  ValueId x = c.tensor("self"), mask = c.tensor("mask");
  const ValueId source = c.reshape(c.tensor("source"), Ints{-1});
  const std::vector<Scalar> sizes = broadcast(c, x, mask);
  x = c.expand(x, sizes);
  mask = c.expand(mask, sizes);
  if (c.dim(source, 0) == Dim(0)) return c.output(x);
  const ValueId flat = c.cast(c.reshape(mask, Ints{-1}), DType::kI64);
  const ValueId before = c.add("cum_sum", {flat, c.constant_int(0)}, {{"exclusive", 1}});
  const ValueId limit = c.add("sub", {c.as_tensor({kNoValue, c.size_of(source, 0)}, DType::kI64), c.constant_int(1)});
  const ValueId taken = c.add("gather", {source, c.add("min", {before, limit})});
  c.output(c.add("where", {mask, c.reshape(taken, sizes), x}));
}

void map_take(Call& c) {
  c.output(c.add("gather", {c.reshape(c.tensor("self"), Ints{-1}), c.cast(c.tensor("index"), DType::kI64)}));
}

void map_one_hot(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t classes = c.integer("num_classes", -1);
  if (classes < 1) return c.fail("one_hot without a number of classes");
  const ValueId numbers = c.add("range", {c.constant_int(0), c.constant_int(classes), c.constant_int(1)});
  const ValueId hot = c.add("equal", {c.unsqueeze(c.cast(x, DType::kI64), {c.rank(x)}), numbers});
  c.output(c.cast(hot, DType::kI64));
}

// Bags of rows of a table, each added up, averaged, or the largest of it. Indices are a vector; bag b starts at
// offsets[b]. Only the first output is defined here, as in evaluation.
void map_embedding_bag(Call& c) {
  const ValueId table = c.tensor("weight");
  const ValueId indices = c.cast(c.tensor("indices"), DType::kI64), offsets = c.cast(c.tensor("offsets"), DType::kI64);
  const int64_t mode = c.integer("mode", 0), padding = c.integer("padding_idx", -1);
  const bool past_end = c.boolean("include_last_offset", false);
  const ValueId weights = c.optional_tensor("per_sample_weights");
  c.ignore({"scale_grad_by_freq", "sparse"});
  if (mode < 0 || mode > 2 || c.rank(indices) != 1) return c.fail("embedding_bag of this mode or rank", str_cat(mode));
  const DType dtype = c.dtype_of(table), in = compute_type(dtype);
  const Dim rows = c.dim(table, 0);
  Scalar bags = c.size_of(offsets, 0);
  if (past_end) bags = c.add_sizes(bags, Scalar::of_int(-1));
  const ValueId numbers = c.add(
      "range", {c.constant_int(0), c.as_tensor({kNoValue, c.size_of(indices, 0)}, DType::kI64), c.constant_int(1)});
  const ValueId bag = c.add("sub", {c.add("search_sorted", {offsets, numbers}, {{"right", 1}}), c.constant_int(1)});
  ValueId parts = c.add("gather", {c.cast(table, in), indices});
  if (weights != kNoValue) parts = c.add("mul", {parts, c.unsqueeze(c.cast(weights, in), {1})});
  ValueId counted = c.full({c.size_of(indices, 0)}, c.constant(1, in));
  const ValueId none = c.constant(mode == 2 ? -INFINITY : 0, in);
  // -1 is the last row for the operator of the API, and no row for those that it becomes.
  const bool none_given = !c.given("padding_idx") || (c.parameter() == "inner" && padding == -1);
  if (!none_given && padding < 0 && !rows.known()) return c.fail("a padding row of a table of symbolic size");
  if (!none_given) {
    const ValueId pad = c.add("equal", {indices, c.constant_int(padding < 0 ? padding + rows.size : padding)});
    parts = c.add("where", {c.unsqueeze(pad, {1}), none, parts});
    counted = c.add("where", {pad, c.constant(0, in), counted});
  }
  const std::vector<Scalar> sizes = {bags, c.size_of(table, 1)};
  const ValueId places = c.unsqueeze(bag, {1});
  const ValueId counts = c.unsqueeze(
      c.add("scatter_nd", {c.full({bags}, c.constant(0, in)), places, counted}, {{"reduction", "add"}}), {1});
  ValueId y = c.add("scatter_nd", {c.full(sizes, none), places, parts}, {{"reduction", mode == 2 ? "max" : "add"}});
  if (mode == 1) y = c.add("div", {y, c.add("max", {counts, c.constant(1, in)})});
  if (mode == 2) y = c.add("where", {c.add("equal", {counts, c.constant(0, in)}), c.constant(0, in), y});
  c.outputs({c.cast(y, dtype), kNoValue, kNoValue, kNoValue});
}

constexpr Mapping kMappings[] = {
    {"aten._embedding_bag", map_embedding_bag, "inner"},
    {"aten._embedding_bag_forward_only", map_embedding_bag, "inner"},
    {"aten._index_put_impl", map_index_put, ""},
    {"aten._unsafe_index", map_index, ""},
    {"aten._unsafe_index_put", map_index_put, ""},
    {"aten.argwhere", map_nonzero, ""},
    {"aten.embedding", map_embedding, ""},
    {"aten.embedding_bag", map_embedding_bag, ""},
    {"aten.gather", map_gather, ""},
    {"aten.index", map_index, ""},
    {"aten.index_put", map_index_put, ""},
    {"aten.index_select", map_index_select, ""},
    {"aten.masked_scatter", map_masked_scatter, ""},
    {"aten.masked_select", map_masked_select, ""},
    {"aten.nonzero", map_nonzero, ""},
    {"aten.nonzero_numpy", map_nonzero, "tuple"},
    {"aten.nonzero_static", map_nonzero_static, ""},
    {"aten.one_hot", map_one_hot, ""},
    {"aten.take", map_take, ""},
    {"aten.take_along_dim", map_take_along_dim, ""},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> indexing_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
