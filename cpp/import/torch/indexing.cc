// Reading and writing by index: gather, scatter, embedding, x[i, :, j], x[mask], x[i] = v.
#include <algorithm>
#include <array>

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
  c.output(c.add("gather", {x, index64(c, index)}, {{"axis", axis}}));
}

void map_embedding(Call& c) {
  const ValueId weight = c.tensor("weight"), indices = c.tensor("indices");
  c.ignore({"padding_idx", "scale_grad_by_freq", "sparse"});
  c.output(c.add("gather", {weight, index64(c, indices)}));
}

void map_scatter(Call& c) {
  const ValueId x = c.tensor("self"), index = index64(c, c.tensor("index"));
  const int64_t axis = c.axis("dim", c.rank(x));
  const std::string_view form = c.parameter();
  const DType dtype = c.dtype_of(x);
  std::string reduction = form == "add" ? "add" : "none";
  if (c.given("reduce")) {
    const std::string mode = c.string("reduce");
    reduction = mode == "sum" || mode == "add"         ? "add"
                : mode == "prod" || mode == "multiply" ? "mul"
                : mode == "amax"                       ? "max"
                : mode == "amin"                       ? "min"
                                                       : "";
    if (reduction.empty()) return c.fail("scatter with this reduction", mode);
    if (!c.boolean("include_self", true)) return c.fail("scatter_reduce without the tensor itself");
  }
  ValueId updates;
  if (c.given("value")) {
    updates = c.expand(c.as_tensor(c.operand("value"), dtype), c.sizes_of(index));
  } else {
    updates = c.cast(c.tensor("src"), dtype);
    for (int i = 0; i < c.rank(index); ++i) {  // src may be larger than index; what is beyond is not used
      if (c.dim(updates, i) != c.dim(index, i)) updates = c.slice(updates, i, Scalar::of_int(0), c.size_of(index, i));
    }
  }
  c.output(c.add("scatter_elements", {x, index, updates}, {{"axis", axis}, {"reduction", reduction}}));
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
    if (c.dtype_of(id) == DType::kU8) {
      c.fail("a u8 mask as index: make it bool");
      return r;
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
  if (r.tensors.size() == 1) return c.output(c.add("gather", {x, r.tensors[0]}, {{"axis", r.axes[0]}}));
  const int rank = c.rank(x);
  const ValueId index = stacked(c, r);
  const ValueId found = c.add("gather_nd", {c.transpose(x, indexed_first(r, rank)), index});
  c.output(c.transpose(found, result_order(r, c.rank(index) - 1, rank)));
}

void map_index_put(Call& c) {
  const ValueId x = c.tensor("self");
  ValueId values = c.cast(c.tensor("values"), c.dtype_of(x));
  const bool accumulate = c.boolean("accumulate", false);
  c.ignore({"unsafe"});
  const std::vector<ValueId> given = c.tensors("indices");
  if (!c.ok()) return;
  const int rank = c.rank(x);
  // x[mask] = number: a choice, no indices needed
  const bool number = c.rank(values) == 0 || (c.rank(values) == 1 && c.dim(values, 0) == Dim(1));
  if (!accumulate && number && given.size() == 1 && given[0] != kNoValue && c.dtype_of(given[0]) == DType::kBool) {
    Ints behind;
    for (int i = c.rank(given[0]); i < rank; ++i) behind.push_back(i);
    const ValueId mask = c.unsqueeze(given[0], behind);
    return c.output(c.add("where", {mask, c.rank(values) ? c.reshape(values, Ints{}) : values, x}));
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
  const ValueId put = c.add("scatter_nd", {moved, index, values}, {{"reduction", accumulate ? "add" : "none"}});
  Ints undo(first.size());
  for (size_t i = 0; i < first.size(); ++i) undo[static_cast<size_t>(first[i])] = static_cast<int64_t>(i);
  c.output(c.transpose(put, undo));
}

// index_copy, index_add, index_fill along one dimension
void map_index_write(Call& c) {
  const ValueId x = c.tensor("self");
  ValueId index = index64(c, c.tensor("index"));
  const int rank = c.rank(x);
  const int64_t axis = c.axis("dim", rank);
  if (!c.ok()) return;
  if (rank == 0) return c.fail("index write into a tensor without dimensions");
  if (c.rank(index) == 0) index = c.unsqueeze(index, {0});
  const DType dtype = c.dtype_of(x);
  std::vector<Scalar> sizes = c.sizes_of(x);
  sizes[static_cast<size_t>(axis)] = c.size_of(index, 0);
  ValueId source;
  if (c.parameter() == "fill") {
    source = c.full(sizes, c.as_tensor(c.operand("value"), dtype));
  } else {
    source = c.cast(c.tensor("source"), dtype);
    if (c.rank(source) == rank - 1) source = c.unsqueeze(source, {axis});
    const Scalar alpha = c.scalar("alpha", Scalar::of_int(1));
    if (!alpha.is(1)) source = c.add("mul", {source, c.as_tensor({kNoValue, alpha}, dtype)});
  }
  const ValueId put = c.add("scatter_nd", {c.swap(x, 0, axis), c.unsqueeze(index, {1}), c.swap(source, 0, axis)},
                            {{"reduction", c.parameter() == "add" ? "add" : "none"}});
  c.output(c.swap(put, 0, axis));
}

void map_nonzero(Call& c) {
  const ValueId found = c.add("non_zero", {c.tensor("self")});  // [rank, n]
  if (c.overload() == "static") return c.fail("nonzero_static");
  if (c.parameter() == "argwhere" || !c.boolean("as_tuple", false)) return c.output(c.swap(found, 0, 1));
  c.fail("nonzero as tuple");
}

void map_masked_select(Call& c) {
  const ValueId x = c.tensor("self"), mask = c.tensor("mask");
  if (c.type(x).shape != c.type(mask).shape) return c.fail("masked_select with broadcasting", to_string(c.type(mask)));
  c.output(c.add("compress", {c.reshape(x, Ints{-1}), c.reshape(mask, Ints{-1})}, {{"axis", 0}}));
}

void map_one_hot(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t classes = c.integer("num_classes", -1);
  if (classes < 1) return c.fail("one_hot without a number of classes");
  const ValueId numbers = c.add("range", {c.constant_int(0), c.constant_int(classes), c.constant_int(1)});
  const ValueId hot = c.add("equal", {c.unsqueeze(c.cast(x, DType::kI64), {c.rank(x)}), numbers});
  c.output(c.cast(hot, DType::kI64));
}

// How many sorted boundaries lie below (or at) each value
void map_bucketize(Call& c) {
  const bool search = c.parameter() == "search";
  const ValueId bounds = c.tensor(search ? "sorted_sequence" : "boundaries");
  const Operand values = c.operand("self");
  bool right = c.boolean("right", false);
  if (c.given("side")) right = c.string("side") == "right";
  c.ignore({"out_int32"});
  if (c.given("sorter") || c.rank(bounds) != 1)
    return c.fail("boundaries of more than one dimension, or with a sorter");
  const std::array<Operand, 2> both = {values, Operand{bounds, {}}};
  const DType dtype = c.promote(both);
  const ValueId v = c.as_tensor(values, dtype);
  const ValueId wide = c.unsqueeze(v, {c.rank(v)});
  const ValueId below = c.add(right ? "less_or_equal" : "less", {c.cast(bounds, dtype), wide});
  const ValueId count = c.add("reduce_sum", {c.cast(below, DType::kI64), c.constant_ints({-1})}, {{"keepdims", 0}});
  c.output(c.cast(count, c.out_dtype()));
}

constexpr Mapping kMappings[] = {
    {"aten._index_put_impl", map_index_put, ""},
    {"aten._unsafe_index", map_index, ""},
    {"aten._unsafe_index_put", map_index_put, ""},
    {"aten.argwhere", map_nonzero, "argwhere"},
    {"aten.bucketize", map_bucketize, ""},
    {"aten.embedding", map_embedding, ""},
    {"aten.gather", map_gather, ""},
    {"aten.index", map_index, ""},
    {"aten.index_add", map_index_write, "add"},
    {"aten.index_copy", map_index_write, "copy"},
    {"aten.index_fill", map_index_write, "fill"},
    {"aten.index_put", map_index_put, ""},
    {"aten.index_select", map_index_select, ""},
    {"aten.masked_select", map_masked_select, ""},
    {"aten.nonzero", map_nonzero, ""},
    {"aten.one_hot", map_one_hot, ""},
    {"aten.scatter", map_scatter, ""},
    {"aten.scatter_add", map_scatter, "add"},
    {"aten.scatter_reduce", map_scatter, "reduce"},
    {"aten.searchsorted", map_bucketize, "search"},
    {"aten.take_along_dim", map_take_along_dim, ""},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> indexing_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
