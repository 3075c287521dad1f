// Tensors put together from others and along diagonals: stacks, block diagonals, products of sets, strided pictures.
#include <algorithm>

#include "import/torch/views.h"

namespace pinnace::torch_import {
namespace {

using Ints = std::vector<int64_t>;

Scalar n(int64_t value) {
  return Scalar::of_int(value);
}

/// atleast_1d, 2d, 3d of one tensor.
ValueId at_least(Call& c, ValueId x, int wanted) {
  const int rank = c.rank(x);
  if (rank >= wanted) return x;
  if (rank == 0) return c.reshape(x, Ints(static_cast<size_t>(wanted), 1));
  if (wanted == 2) return c.unsqueeze(x, {0});
  return rank == 1 ? c.unsqueeze(x, {0, 2}) : c.unsqueeze(x, {2});
}

void map_at_least(Call& c) {
  const int wanted = c.parameter()[0] - '0';
  if (c.given("self")) {
    c.shares(Sharing::kView);
    return c.output(at_least(c, c.tensor("self"), wanted));
  }
  std::vector<ValueId> out;
  c.shares(Sharing::kView);
  for (ValueId id : c.tensors("tensors")) out.push_back(at_least(c, id, wanted));
  c.outputs(std::move(out));
}

// dstack: along the third axis; column_stack: vectors become columns
void map_stacked(Call& c) {
  const bool deep = c.parameter() == "d";
  const DType dtype = c.out_dtype();
  std::vector<ValueId> parts;
  for (ValueId id : c.tensors("tensors")) {
    ValueId x = c.cast(id, dtype);
    if (deep) {
      x = at_least(c, x, 3);
    } else if (c.rank(x) < 2) {
      x = c.reshape(x, {c.rank(x) ? c.size_of(x, 0) : n(1), n(1)});
    }
    parts.push_back(x);
  }
  c.output(c.concat(std::move(parts), deep ? 2 : 1));
}

void map_broadcast_tensors(Call& c) {
  const std::vector<ValueId> given = c.tensors("tensors");
  std::vector<Scalar> sizes(static_cast<size_t>(c.out_rank()), n(1));
  for (ValueId id : given) {
    const size_t added = sizes.size() - static_cast<size_t>(c.rank(id));
    for (int i = 0; i < c.rank(id); ++i) {
      if (c.dim(id, i) != Dim(1)) sizes[added + static_cast<size_t>(i)] = c.size_of(id, i);
    }
  }
  std::vector<ValueId> out;
  for (ValueId id : given) out.push_back(c.expand(id, sizes));
  c.shares(Sharing::kView);
  c.outputs(std::move(out));
}

/// x with that many zeros around it along both axes.
ValueId padded(Call& c, ValueId x, const std::vector<Scalar>& pads) {
  return c.add("pad", {x, c.size_values(pads), c.constant_int(0, c.dtype_of(x))});
}

void map_block_diag(Call& c) {
  const DType dtype = c.out_dtype();
  std::vector<ValueId> blocks;
  for (ValueId id : c.tensors("tensors")) blocks.push_back(at_least(c, c.cast(id, dtype), 2));
  std::vector<Scalar> behind(blocks.size() + 1, n(0));
  for (size_t i = blocks.size(); i-- > 0;) behind[i] = c.add_sizes(behind[i + 1], c.size_of(blocks[i], 1));
  std::vector<ValueId> rows;
  Scalar before = n(0);
  for (size_t i = 0; i < blocks.size() && c.ok(); ++i) {
    rows.push_back(padded(c, blocks[i], {n(0), before, n(0), behind[i + 1]}));
    before = c.add_sizes(before, c.size_of(blocks[i], 1));
  }
  c.output(c.concat(std::move(rows), 0));
}

void map_cartesian(Call& c) {
  const std::vector<ValueId> sets = c.tensors("tensors");
  if (sets.size() == 1) return c.output(sets[0]);
  std::vector<Scalar> sizes;
  for (ValueId id : sets) sizes.push_back(c.size_of(id, 0));
  std::vector<ValueId> columns;
  for (size_t i = 0; i < sets.size(); ++i) {
    std::vector<Scalar> shape(sets.size(), n(1));
    shape[i] = sizes[i];
    columns.push_back(c.reshape(c.expand(c.reshape(sets[i], shape), sizes), Ints{-1, 1}));
  }
  c.output(c.concat(std::move(columns), 1));
}

// r of the n elements in all orders of places, with replacement or without
void map_combinations(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t r = c.integer("r", 2);
  const bool again = c.boolean("with_replacement", false);
  const Dim size = c.dim(x, 0);
  if (!size.known() || r < 0 || size.size > 4096) return c.fail("combinations of this size", str_cat(r));
  std::vector<int64_t> places, at(static_cast<size_t>(r));
  int64_t count = 0;
  const auto choose = [&](auto&& self, size_t depth, int64_t from) -> void {
    if (places.size() > (1u << 20)) return;
    if (depth == at.size()) {
      ++count;
      return static_cast<void>(places.insert(places.end(), at.begin(), at.end()));
    }
    for (int64_t i = from; i < size.size; ++i) {
      at[depth] = i;
      self(self, depth + 1, again ? i : i + 1);
    }
  };
  if (r > 0) choose(choose, 0, 0);
  if (places.size() > (1u << 20)) return c.fail("more than 2^20 combinations");
  if (r == 0) return c.output(c.slice(x, 0, n(0), n(0)));
  c.output(c.reshape(c.add("gather", {x, c.constant_ints(places)}), {n(count), n(r)}));
}

/// The last axis on a diagonal of two new last axes, `offset` above it (below where negative).
ValueId on_diagonal(Call& c, ValueId x, int64_t offset) {
  constexpr int64_t kFarthest = 1 << 20;
  if (offset > kFarthest || offset < -kFarthest) {
    c.fail("a diagonal this far from the main one", str_cat(offset));
    return x;
  }
  if (const Dim size = c.dim(x, -1); size.known() && size.size > kFarthest) {
    c.fail("a diagonal of this length", str_cat(size.size));
    return x;
  }
  const int rank = c.rank(x);
  const int64_t skip = std::abs(offset);
  const ValueId side = c.as_tensor({kNoValue, c.add_sizes(c.size_of(x, -1), n(skip))}, DType::kI64);
  // A row holds its element in all columns, of which a mask keeps one. Rows beyond the elements have a column there is
  // not.
  std::vector<Scalar> pads(static_cast<size_t>(2 * rank), n(0));
  pads[static_cast<size_t>(offset < 0 ? rank - 1 : 2 * rank - 1)] = n(skip);
  const bool truth = c.dtype_of(x) == DType::kBool;
  if (truth) x = c.cast(x, DType::kU8);
  const ValueId rows = skip > 0 ? padded(c, x, pads) : x;
  const ValueId numbers = c.add("range", {c.constant_int(0), side, c.constant_int(1)});
  const ValueId wanted = c.add("add", {c.unsqueeze(numbers, {1}), c.constant_int(offset)});
  const ValueId mask = c.add("equal", {wanted, numbers});
  const ValueId y = c.add("where", {mask, c.unsqueeze(rows, {rank}), c.constant_int(0, c.dtype_of(x))});
  return truth ? c.cast(y, DType::kBool) : y;
}

void map_diag_embed(Call& c) {
  const ValueId x = c.tensor("self");
  const int rank = c.rank(x) + 1;
  const int64_t offset = c.integer("offset", 0), a = c.axis("dim1", rank, -2), b = c.axis("dim2", rank, -1);
  if (a == b) return c.fail("equal axes");
  // The two new axes are made last and moved to a and b.
  const ValueId y = on_diagonal(c, x, offset);
  Ints order(static_cast<size_t>(rank), -1);
  order[static_cast<size_t>(a)] = rank - 2;
  order[static_cast<size_t>(b)] = rank - 1;
  int64_t next = 0;
  for (int64_t& at : order) {
    if (at < 0) at = next++;
  }
  c.output(c.ok() ? c.transpose(y, order) : y);
}

// diag and diagflat: a vector becomes a matrix; diag of a matrix is its diagonal
void map_diag(Call& c) {
  ValueId x = c.tensor("self");
  const bool flat = c.parameter() == "flat";
  const int64_t offset = c.integer(flat ? "offset" : "diagonal", 0);
  if (flat) x = c.reshape(x, Ints{-1});
  if (c.rank(x) == 1) return c.output(on_diagonal(c, x, offset));
  if (c.rank(x) != 2) return c.fail("diag of this rank", str_cat(c.rank(x)));
  c.output(diagonal_of(c, x, 0, 1, offset));
}

// tril_indices, triu_indices: [2, n]
void map_triangle_indices(Call& c) {
  c.ignore({"dtype", "layout", "device", "pin_memory"});
  const int64_t rows = c.integer("row"), columns = c.integer("col"), offset = c.integer("offset", 0);
  const bool upper = c.parameter() == "upper";
  if (rows < 0 || columns < 0 || rows > (1 << 20) || (rows && columns > (1 << 20) / rows))
    return c.fail("indices of this size");
  Ints both;
  for (int axis = 0; axis < 2; ++axis) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t k = 0; k < columns; ++k) {
        if (upper ? k - i >= offset : k - i <= offset) both.push_back(axis ? k : i);
      }
    }
  }
  const int64_t count = static_cast<int64_t>(both.size()) / 2;
  c.output(c.cast(c.reshape(c.constant_ints(both), {n(2), n(count)}), c.out_dtype()));
}

void map_kron(Call& c) {
  const DType dtype = c.out_dtype();
  ValueId a = c.cast(c.tensor("self"), dtype), b = c.cast(c.tensor("other"), dtype);
  const int rank = std::max(c.rank(a), c.rank(b));
  std::vector<Scalar> wide_a, wide_b, sizes;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - c.rank(a)), ib = i - (rank - c.rank(b));
    const Scalar x = ia < 0 ? n(1) : c.size_of(a, ia), y = ib < 0 ? n(1) : c.size_of(b, ib);
    wide_a.insert(wide_a.end(), {x, n(1)});
    wide_b.insert(wide_b.end(), {n(1), y});
    sizes.push_back(c.multiply_sizes(x, y));
  }
  const char* op = dtype == DType::kBool ? "and" : "mul";
  c.output(c.reshape(c.add(op, {c.reshape(a, wide_a), c.reshape(b, wide_b)}), sizes));
}

// fft_fftshift and its inverse: halves of each axis change places
void map_fft_shift(Call& c) {
  ValueId x = c.tensor("self");
  for (int64_t axis : c.axes("dim", c.rank(x))) {
    const Dim size = c.dim(x, axis);
    if (!size.known()) return c.fail("a shift of a symbolic dimension");
    const Scalar cut = n(c.parameter() == "inverse" ? size.size / 2 : (size.size + 1) / 2);
    if (size.size < 2) continue;
    x = c.concat({c.slice(x, axis, cut, n(INT64_MAX)), c.slice(x, axis, n(0), cut)}, axis);
  }
  c.output(x);
}

// Powers of each element as a new last axis
void map_vander(Call& c) {
  const ValueId x = c.cast(c.tensor("x"), c.out_dtype());
  const Dim last = c.dim(x, -1);
  if (!last.known()) return c.fail("vander of a symbolic size");
  const int64_t count = c.integer("N", last.size);
  const bool rising = c.parameter() == "linalg" || c.boolean("increasing", false);
  std::vector<ValueId> powers;
  for (int64_t i = 0; i < count && i < 4096; ++i) {
    powers.push_back(c.unsqueeze(c.add("pow", {x, c.constant(static_cast<double>(i), c.dtype_of(x))}), {c.rank(x)}));
  }
  if (!rising) std::reverse(powers.begin(), powers.end());
  if (powers.empty()) return c.fail("vander without columns");
  c.output(c.concat(std::move(powers), c.rank(x)));
}

constexpr Mapping kMappings[] = {
    {"aten.atleast_1d", map_at_least, "1"},
    {"aten.atleast_2d", map_at_least, "2"},
    {"aten.atleast_3d", map_at_least, "3"},
    {"aten.block_diag", map_block_diag, ""},
    {"aten.broadcast_tensors", map_broadcast_tensors, ""},
    {"aten.cartesian_prod", map_cartesian, ""},
    {"aten.column_stack", map_stacked, ""},
    {"aten.combinations", map_combinations, ""},
    {"aten.diag", map_diag, ""},
    {"aten.diag_embed", map_diag_embed, ""},
    {"aten.diagflat", map_diag, "flat"},
    {"aten.dstack", map_stacked, "d"},
    {"aten.fft_fftshift", map_fft_shift, ""},
    {"aten.fft_ifftshift", map_fft_shift, "inverse"},
    {"aten.kron", map_kron, ""},
    {"aten.linalg_vander", map_vander, "linalg"},
    {"aten.tril_indices", map_triangle_indices, "lower"},
    {"aten.triu_indices", map_triangle_indices, "upper"},
    {"aten.vander", map_vander, ""},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> combine_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
