// Operators whose result shows all elements of their input, in the same memory: reshaping, permuting, expanding.
#include "import/torch/views.h"

#include <algorithm>

namespace pinnace::torch_import {
namespace {

/// True if the strides of a tensor are those of dense rows; symbolic ones count as dense if they are in order.
std::optional<bool> contiguous(const TensorMeta* meta) {
  if (!meta) return std::nullopt;
  int64_t expected = 1;
  for (size_t i = meta->sizes.size(); i-- > 0;) {
    const SizeDef &size = meta->sizes[i], &stride = meta->strides[i];
    if (!size.expression.empty() || !stride.expression.empty()) {
      // The outermost size does not matter; beyond that nothing is certain.
      if (i == 0 && stride.expression.empty()) return stride.value == expected;
      return std::nullopt;
    }
    if (size.value == 0) return true;
    if (size.value != 1 && stride.value != expected) return false;
    expected *= size.value;
  }
  return true;
}

/// view always shares memory; reshape and flatten do if the input is dense (else torch may have to copy).
void share_if_dense(Call& c) {
  const auto dense = contiguous(c.meta_of("self"));
  c.shares(dense && *dense ? Sharing::kView : Sharing::kUncertain);
}

/// Sizes for a reshape, -1 among them replaced by what the archive says of the result: where other sizes have no names,
/// -1 alone would leave the dimension unknown, and a split of it would be refused.
std::vector<Scalar> with_stated_size(Call& c, std::vector<Scalar> sizes) {
  const TensorMeta* stated = c.meta();
  if (!stated || stated->sizes.size() != sizes.size()) return sizes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const SizeDef& size = stated->sizes[i];
    if (sizes[i].is(-1) && size.expression.empty() && size.value > 0) sizes[i] = Scalar::of_int(size.value);
  }
  return sizes;
}

void map_view(Call& c) {
  const ValueId x = c.tensor("self");
  if (c.given("dtype")) return c.fail("view as another element type");
  const bool reshape = c.parameter() == "reshape";
  if (reshape) {
    share_if_dense(c);
  } else {
    c.shares(Sharing::kView);
  }
  c.output(c.reshape(x, with_stated_size(c, c.sizes(reshape ? "shape" : "size"))));
}

void map_view_as(Call& c) {
  const ValueId x = c.tensor("self");
  c.shares(Sharing::kView);
  c.output(c.reshape(x, c.sizes_of(c.tensor("other"))));
}

void map_flatten(Call& c) {
  const ValueId x = c.tensor("self");
  const int rank = c.rank(x);
  const int64_t first = c.axis("start_dim", rank, 0), last = c.axis("end_dim", rank, -1);
  if (!c.ok()) return;
  share_if_dense(c);
  if (rank == 0) return c.output(c.reshape(x, std::vector<int64_t>{1}));
  std::vector<Scalar> sizes;
  Scalar product = Scalar::of_int(1);
  bool open = false;
  for (int64_t i = first; i <= last; ++i) open |= !c.dim(x, i).known();
  for (int64_t i = first; i <= last && !open; ++i) product = c.multiply_sizes(product, c.size_of(x, i));
  const bool empty = product.is(0);
  int others = 0;
  for (int64_t i = 0; i < rank; ++i) {
    if (i == first) {
      sizes.push_back(open && !empty ? Scalar::of_int(-1) : product);
    } else if (i < first || i > last) {
      sizes.push_back(c.size_of(x, i));
      others += !c.dim(x, i).known();
    }
  }
  if (open && others > 0) {  // no -1 beside sizes that may be 0
    for (int64_t i = first; i <= last; ++i) product = c.multiply_sizes(product, c.size_of(x, i));
    sizes[static_cast<size_t>(first)] = product;
  }
  c.output(c.reshape(x, sizes));
}

void map_unflatten(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t axis = c.axis("dim", c.rank(x));
  const std::vector<Scalar> parts = c.sizes("sizes");
  if (!c.ok()) return;
  c.ignore({"names"});
  std::vector<Scalar> sizes = c.sizes_of(x);
  if (sizes.empty()) return c.fail("unflatten of a tensor without dimensions");
  sizes.erase(sizes.begin() + axis);
  sizes.insert(sizes.begin() + axis, parts.begin(), parts.end());
  c.shares(Sharing::kView);
  c.output(c.reshape(x, sizes));
}

void map_unsqueeze(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t axis = c.axis("dim", c.rank(x) + 1);
  c.shares(Sharing::kView);
  c.output(c.unsqueeze(x, {axis}));
}

void map_squeeze(Call& c) {
  const ValueId x = c.tensor("self");
  std::vector<int64_t> axes;
  for (int64_t axis : c.axes("dim", c.rank(x), !c.given("dim"))) {
    const Dim d = c.dim(x, axis);
    if (d == Dim(1)) axes.push_back(axis);  // a symbolic size counts as more than one, as export assumes
  }
  c.shares(Sharing::kView);
  c.output(c.squeeze(x, axes));
}

void map_transpose(Call& c) {
  const ValueId x = c.tensor("self");
  const int rank = c.rank(x);
  c.shares(Sharing::kView);
  if (c.parameter() == "t") return c.output(rank < 2 ? x : c.swap(x, 0, 1));
  if (c.parameter() == "mT") return c.output(c.swap(x, -2, -1));
  if (c.parameter() == "T") {
    std::vector<int64_t> order;
    for (int i = rank; i-- > 0;) order.push_back(i);
    return c.output(c.transpose(x, order));
  }
  const bool axes = c.parameter() == "axes";
  const int64_t a = c.axis(axes ? "axis0" : "dim0", rank), b = c.axis(axes ? "axis1" : "dim1", rank);
  c.output(rank < 2 ? x : c.swap(x, a, b));
}

void map_permute(Call& c) {
  const ValueId x = c.tensor("self");
  const std::vector<int64_t> order = permutation(c, c.rank(x));
  if (!c.ok()) return;
  c.shares(Sharing::kView);
  c.output(c.transpose(x, order));
}

void map_movedim(Call& c) {
  const ValueId x = c.tensor("self");
  const std::vector<int64_t> order = movedim_order(c, c.rank(x));
  if (!c.ok()) return;
  c.shares(Sharing::kView);
  c.output(c.transpose(x, order));
}

void map_expand(Call& c) {
  const ValueId x = c.tensor("self");
  c.ignore({"implicit"});
  c.shares(Sharing::kView);
  c.output(c.expand(x, c.parameter() == "as" ? c.sizes_of(c.tensor("other")) : c.sizes("size")));
}

void map_same(Call& c) {
  c.ignore({"requires_grad"});
  const ValueId x = c.tensor("self");
  c.shares(Sharing::kSame);
  c.output(x);
}

void map_contiguous(Call& c) {
  const ValueId x = c.tensor("self");
  const Argument* format = c.argument("memory_format");
  const auto dense = contiguous(c.meta_of("self"));
  const bool plain = !format || format->integer == 1;
  c.shares(plain && dense ? (*dense ? Sharing::kSame : Sharing::kNone) : Sharing::kUncertain);
  c.output(x);
}

void map_clone(Call& c) {
  c.ignore({"memory_format"});
  c.output(c.tensor("self"));
}

constexpr Mapping kMappings[] = {
    {"aten._reshape_alias", map_view, ""},
    {"aten._unsafe_view", map_view, ""},
    {"aten.adjoint", map_transpose, "mT"},
    {"aten.alias", map_same, ""},
    {"aten.broadcast_to", map_expand, ""},
    {"aten.clone", map_clone, ""},
    {"aten.contiguous", map_contiguous, ""},
    {"aten.detach", map_same, ""},
    {"aten.detach_", map_same, ""},
    {"aten.expand", map_expand, ""},
    {"aten.expand_as", map_expand, "as"},
    {"aten.flatten", map_flatten, ""},
    {"aten.lift", map_same, ""},
    {"aten.lift_fresh", map_same, ""},
    {"aten.lift_fresh_copy", map_clone, ""},
    {"aten.mH", map_transpose, "mT"},
    {"aten.mT", map_transpose, "mT"},
    {"aten.matrix_H", map_transpose, "mT"},
    {"aten.movedim", map_movedim, ""},
    {"aten.numpy_T", map_transpose, "T"},
    {"aten.permute", map_permute, ""},
    {"aten.positive", map_same, ""},
    {"aten.ravel", map_flatten, ""},
    {"aten.requires_grad_", map_same, ""},
    {"aten.reshape", map_view, "reshape"},
    {"aten.reshape_as", map_view_as, ""},
    {"aten.squeeze", map_squeeze, ""},
    {"aten.swapaxes", map_transpose, "axes"},
    {"aten.swapdims", map_transpose, ""},
    {"aten.t", map_transpose, "t"},
    {"aten.transpose", map_transpose, ""},
    {"aten.unflatten", map_unflatten, ""},
    {"aten.unsqueeze", map_unsqueeze, ""},
    {"aten.view", map_view, ""},
    {"aten.view_as", map_view_as, ""},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> view_mappings() {
  return kMappings;
}

std::vector<int64_t> permutation(Call& c, int rank) {
  std::vector<int64_t> order = c.ints("dims");
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  bool right = order.size() == seen.size();
  for (int64_t& at : order) {
    if (at < 0) at += rank;
    right = right && at >= 0 && at < rank && !seen[static_cast<size_t>(at)];
    if (right) seen[static_cast<size_t>(at)] = true;
  }
  if (!right) c.fail("dims is no permutation of the axes", list_text<int64_t>(order));
  return order;
}

std::vector<int64_t> movedim_order(Call& c, int rank) {
  std::vector<int64_t> from = c.ints("source"), to = c.ints("destination"), order(static_cast<size_t>(rank), -1);
  std::vector<bool> moved(static_cast<size_t>(rank), false);
  bool right = from.size() == to.size();
  for (size_t i = 0; right && i < from.size(); ++i) {
    if (from[i] < 0) from[i] += rank;
    if (to[i] < 0) to[i] += rank;
    right = from[i] >= 0 && from[i] < rank && to[i] >= 0 && to[i] < rank && !moved[static_cast<size_t>(from[i])] &&
            order[static_cast<size_t>(to[i])] < 0;
    if (!right) break;
    moved[static_cast<size_t>(from[i])] = true;
    order[static_cast<size_t>(to[i])] = from[i];
  }
  if (!right) {
    c.fail("source and destination do not fit the axes");
    return {};
  }
  int64_t next = 0;
  for (int64_t& at : order) {
    if (at >= 0) continue;
    while (moved[static_cast<size_t>(next)]) ++next;
    at = next++;
  }
  return order;
}

}  // namespace pinnace::torch_import
