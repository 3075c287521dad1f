// Operators whose result shows the same memory as their input: reshaping, permuting, selecting. What a write into such
// a result does to the input is written beside them.
#include <algorithm>
#include <map>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

const Scalar kStart = Scalar::of_int(0), kEnd = Scalar::of_int(INT64_MAX);

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

void map_view(Call& c) {
  const ValueId x = c.tensor("self");
  if (c.given("dtype")) return c.fail("view as another element type");
  const bool reshape = c.parameter() == "reshape";
  if (reshape) {
    share_if_dense(c);
  } else {
    c.shares(Sharing::kView);
  }
  c.output(c.reshape(x, c.sizes(reshape ? "shape" : "size")));
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

void map_permute(Call& c) {
  const ValueId x = c.tensor("self");
  const std::vector<int64_t> order = permutation(c, c.rank(x));
  if (!c.ok()) return;
  c.shares(Sharing::kView);
  c.output(c.transpose(x, order));
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

void map_select(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t axis = c.axis("dim", c.rank(x));
  const Scalar index = c.scalar("index");
  c.shares(Sharing::kView);
  c.output(c.gather(x, c.as_tensor({kNoValue, index}, DType::kI64), axis));
}

struct SliceOf {
  int64_t axis;
  Scalar start, end;
  int64_t step;
};
SliceOf slice_of(Call& c, int rank) {
  return {c.axis("dim", rank, 0), c.scalar("start", kStart), c.scalar("end", kEnd), c.integer("step", 1)};
}

void map_slice(Call& c) {
  const ValueId x = c.tensor("self");
  const SliceOf s = slice_of(c, c.rank(x));
  if (c.ok() && s.step < 1) return c.fail("a slice with a step below 1", str_cat(s.step));
  c.shares(Sharing::kView);
  c.output(c.slice(x, s.axis, s.start, s.end, s.step));
}

void map_narrow(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t axis = c.axis("dim", c.rank(x));
  const Scalar start = c.scalar("start"), length = c.scalar("length");
  c.shares(Sharing::kView);
  c.output(c.slice(x, axis, start, c.add_sizes(start, length)));
}

/// Sizes of the parts along an axis: from a size, a number of chunks, or a list.
std::vector<int64_t> split_sizes(Call& c, ValueId x, int64_t axis) {
  std::vector<int64_t> parts;
  const std::string_view form = c.parameter();
  const Dim size = c.dim(x, axis);
  if (c.given("split_sizes")) return c.ints("split_sizes");
  if (c.given("split_size") && c.argument("split_size")->kind == ArgumentKind::kInts) return c.ints("split_size");
  if (!size.known()) {
    c.fail("split of a symbolic dimension");
    return parts;
  }
  int64_t step = form == "split" ? c.integer("split_size") : 0;
  if (form == "chunk") {
    const int64_t chunks = c.integer("chunks");
    if (chunks < 1) c.fail("chunks", str_cat(chunks));
    step = chunks < 1 ? 0 : (size.size + chunks - 1) / chunks;
  }
  if (form == "h" || form == "v" || form == "d") {
    if (c.given("indices") || !c.given("sections")) {
      int64_t last = 0;
      for (int64_t at : c.ints("indices")) {
        at = std::clamp(at < 0 ? at + size.size : at, last, size.size);
        parts.push_back(at - last);
        last = at;
      }
      parts.push_back(size.size - last);
      return parts;
    }
    const int64_t sections = c.integer("sections");
    if (sections < 1 || sections > 65536 || size.size % sections) c.fail("sections", str_cat(sections));
    if (c.ok()) parts.assign(static_cast<size_t>(sections), size.size / sections);
    return parts;
  }
  if (form == "tensor_split") {
    std::optional<std::vector<int64_t>> places;
    std::optional<int64_t> count;
    if (c.given("indices")) places = c.ints("indices");
    if (c.given("tensor_indices_or_sections")) {
      const ValueId listed = c.tensor("tensor_indices_or_sections");
      places = c.known_ints(listed);
      if (!places) {
        c.fail("tensor_split at places that are not known at export");
        return parts;
      }
      if (c.rank(listed) == 0) {
        count = (*places)[0];
        places.reset();
      }
    }
    if (places) {
      int64_t last = 0;
      for (int64_t at : *places) {
        at = std::clamp(at < 0 ? at + size.size : at, last, size.size);
        parts.push_back(at - last);
        last = at;
      }
      parts.push_back(size.size - last);
      return parts;
    }
    const int64_t sections = count ? *count : c.integer("sections");
    if (sections < 1 || sections > 65536) {
      c.fail("sections", str_cat(sections));
      return parts;
    }
    for (int64_t i = 0; i < sections; ++i) parts.push_back(size.size / sections + (i < size.size % sections));
    return parts;
  }
  if (size.size == 0) return {0};
  if (step < 1 || size.size / step > 65536) {
    c.fail("split into parts of this size", str_cat(step));
    return parts;
  }
  for (int64_t at = 0; at < size.size; at += step) parts.push_back(std::min(step, size.size - at));
  return parts;
}

void map_split(Call& c) {
  const ValueId x = c.tensor("self");
  const std::string_view form = c.parameter();
  const int64_t usual = form == "d" ? 2 : form == "h" && c.rank(x) > 1 ? 1 : 0;
  const int64_t axis = c.axis("dim", c.rank(x), usual);
  const std::vector<int64_t> parts = split_sizes(c, x, axis);
  if (!c.ok()) return;
  c.shares(Sharing::kView);
  if (parts.size() == 1) return c.output(x);
  c.outputs(c.split(x, parts, axis));
}

void map_unbind(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t axis = c.axis("dim", c.rank(x), 0);
  const Dim size = c.dim(x, axis);
  if (!size.known() || size.size > 65536) return c.fail("unbind of a symbolic dimension");
  c.shares(Sharing::kView);
  std::vector<ValueId> parts;
  for (int64_t i = 0; i < size.size && c.ok(); ++i) {
    parts.push_back(c.gather(x, c.constant_int(i), axis));
  }
  c.outputs(std::move(parts));
}

void map_diagonal(Call& c) {
  const bool last = c.given("A");  // linalg's: of the last two
  const ValueId x = c.tensor(last ? "A" : "self");
  const int rank = c.rank(x);
  const int64_t a = c.axis("dim1", rank, last ? -2 : 0), b = c.axis("dim2", rank, last ? -1 : 1),
                offset = c.integer("offset", 0);
  const Dim rows = c.dim(x, a), columns = c.dim(x, b);
  if (rank < 2 || a == b || !rows.known() || !columns.known())
    return c.fail("diagonal of symbolic or equal dimensions");
  c.shares(Sharing::kView);
  const int64_t skip_rows = std::max<int64_t>(-offset, 0), skip_columns = std::max<int64_t>(offset, 0);
  const int64_t count = std::max<int64_t>(0, std::min(rows.size - skip_rows, columns.size - skip_columns));
  if (count > (1 << 20)) return c.fail("diagonal of this length", str_cat(count));
  // The two axes to the end, as one axis of rows * columns, from which the diagonal is gathered.
  std::vector<int64_t> order;
  for (int i = 0; i < rank; ++i) {
    if (i != a && i != b) order.push_back(i);
  }
  order.push_back(a);
  order.push_back(b);
  const ValueId moved = c.transpose(x, order);
  std::vector<Scalar> sizes = c.sizes_of(moved);
  sizes.resize(static_cast<size_t>(rank - 2));
  sizes.push_back(Scalar::of_int(rows.size * columns.size));
  std::vector<int64_t> at;
  for (int64_t i = 0; i < count; ++i) at.push_back((i + skip_rows) * columns.size + i + skip_columns);
  c.output(c.gather(c.reshape(moved, sizes), c.constant_ints(at), rank - 2));
}

// unfold(dim, size, step): windows of a dimension as a new last one
void map_unfold(Call& c) {
  ValueId x = c.tensor("self");
  if (c.rank(x) == 0) {  // one window of its one element
    c.ignore({"dimension", "step"});
    c.shares(Sharing::kView);
    return c.output(c.integer("size") == 1 ? c.reshape(x, std::vector<int64_t>{1}) : c.full({kStart}, x));
  }
  const int64_t axis = c.axis("dimension", c.rank(x)), size = c.integer("size"), step = c.integer("step");
  const Dim length = c.dim(x, axis);
  if (!length.known() || step < 1 || size < 0 || size > length.size)
    return c.fail("unfold of a symbolic dimension, or beyond it");
  const int64_t windows = (length.size - size) / step + 1;
  if (windows > (1 << 22) / std::max<int64_t>(size, 1))
    return c.fail("unfold into this many windows", str_cat(windows));
  std::vector<int64_t> at;
  for (int64_t w = 0; w < windows; ++w) {
    for (int64_t i = 0; i < size; ++i) at.push_back(w * step + i);
  }
  c.shares(Sharing::kView);
  const ValueId index = c.reshape(c.constant_ints(at), std::vector<int64_t>{windows, size});
  const ValueId windowed = c.gather(x, index, axis);  // [..., windows, size, ...]
  std::vector<int64_t> order;
  for (int i = 0; i < c.rank(x) + 1; ++i) {
    if (i != axis + 1) order.push_back(i);
  }
  order.push_back(axis + 1);
  c.output(c.transpose(windowed, order));
}

/// Where each element of a tensor with these strides lies, counted from its first one; empty if that is not known or
/// there are more than 2^22.
std::vector<int64_t> positions(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, int64_t start) {
  int64_t count = 1;
  for (int64_t size : sizes) {
    if (size < 0 || (size > 0 && count > (1 << 22) / size)) return {};
    count *= size;
  }
  std::vector<int64_t> at, index(sizes.size(), 0);
  at.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = start;
    for (size_t d = 0; d < sizes.size(); ++d) place += index[d] * strides[d];
    at.push_back(place);
    for (size_t d = sizes.size(); d-- > 0;) {
      ++index[d];
      if (index[d] < sizes[d]) break;
      index[d] = 0;
    }
  }
  return at;
}

// as_strided: a picture of the memory behind a tensor. Every place is looked up among those of the tensor's elements.
void map_as_strided(Call& c) {
  const ValueId x = c.tensor("self");
  const std::vector<int64_t> sizes = c.ints("size"), strides = c.ints("stride");
  const TensorMeta* meta = c.meta_of("self");
  if (!c.ok()) return;
  std::vector<int64_t> own_sizes, own_strides;
  bool known = meta && sizes.size() == strides.size();
  for (size_t i = 0; known && i < meta->sizes.size(); ++i) {
    known = meta->sizes[i].expression.empty() && meta->strides[i].expression.empty();
    own_sizes.push_back(meta->sizes[i].value);
    own_strides.push_back(meta->strides[i].value);
  }
  if (!known) return c.fail("as_strided of a symbolic size");
  const int64_t first = meta->storage_offset;
  const std::vector<int64_t> own = positions(own_sizes, own_strides, first);
  std::vector<int64_t> wanted = positions(sizes, strides, c.integer("storage_offset", first));
  std::map<int64_t, int64_t> element;
  for (size_t i = 0; i < own.size(); ++i) element.emplace(own[i], static_cast<int64_t>(i));
  for (int64_t& place : wanted) {
    const auto at = element.find(place);
    if (at == element.end()) return c.fail("as_strided of memory that is not the tensor's", str_cat(place));
    place = at->second;
  }
  std::vector<Scalar> shape;
  for (int64_t size : sizes) shape.push_back(Scalar::of_int(size));
  c.shares(Sharing::kView);
  bool rows = true;
  for (size_t i = 0; i < wanted.size(); ++i) rows = rows && wanted[i] == static_cast<int64_t>(i);
  if (wanted.empty()) return c.output(c.full(shape, c.constant_int(0, c.dtype_of(x))));
  const ValueId flat = c.reshape(x, std::vector<int64_t>{-1});
  if (rows)
    return c.output(c.reshape(c.slice(flat, 0, kStart, Scalar::of_int(static_cast<int64_t>(wanted.size()))), shape));
  c.output(c.reshape(c.add("gather", {flat, c.constant_ints(wanted)}), shape));
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

ValueId put_by_places(Call& c, std::string_view view, ValueId base, ValueId written, size_t output);

// The tensor with a view of it replaced: diagonal_scatter, as_strided_scatter
void map_view_scatter(Call& c) {
  const ValueId x = c.tensor("self"), source = c.cast(c.tensor("src"), c.dtype_of(x));
  if (c.type(source).elements() == 0) {
    c.ignore({"size", "stride", "storage_offset", "offset", "dim1", "dim2"});
    return c.output(x);
  }
  const ValueId y = put_by_places(c, c.parameter(), x, source, 0);
  c.ignore({"size", "stride", "storage_offset", "offset", "dim1", "dim2"});
  c.output(y);
}

constexpr Mapping kMappings[] = {
    {"aten._reshape_alias", map_view, ""},
    {"aten._unsafe_view", map_view, ""},
    {"aten.adjoint", map_transpose, "mT"},
    {"aten.alias", map_same, ""},
    {"aten.as_strided", map_as_strided, ""},
    {"aten.as_strided_scatter", map_view_scatter, "aten.as_strided"},
    {"aten.broadcast_to", map_expand, ""},
    {"aten.chunk", map_split, "chunk"},
    {"aten.clone", map_clone, ""},
    {"aten.contiguous", map_contiguous, ""},
    {"aten.detach", map_same, ""},
    {"aten.detach_", map_same, ""},
    {"aten.diagonal", map_diagonal, ""},
    {"aten.diagonal_scatter", map_view_scatter, "aten.diagonal"},
    {"aten.dsplit", map_split, "d"},
    {"aten.expand", map_expand, ""},
    {"aten.expand_as", map_expand, "as"},
    {"aten.flatten", map_flatten, ""},
    {"aten.hsplit", map_split, "h"},
    {"aten.lift", map_same, ""},
    {"aten.lift_fresh", map_same, ""},
    {"aten.lift_fresh_copy", map_clone, ""},
    {"aten.linalg_diagonal", map_diagonal, ""},
    {"aten.mH", map_transpose, "mT"},
    {"aten.mT", map_transpose, "mT"},
    {"aten.matrix_H", map_transpose, "mT"},
    {"aten.movedim", map_movedim, ""},
    {"aten.narrow", map_narrow, ""},
    {"aten.numpy_T", map_transpose, "T"},
    {"aten.permute", map_permute, ""},
    {"aten.positive", map_same, ""},
    {"aten.ravel", map_flatten, ""},
    {"aten.requires_grad_", map_same, ""},
    {"aten.reshape", map_view, "reshape"},
    {"aten.reshape_as", map_view_as, ""},
    {"aten.select", map_select, ""},
    {"aten.slice", map_slice, ""},
    {"aten.split", map_split, "split"},
    {"aten.split_with_sizes", map_split, "sizes"},
    {"aten.squeeze", map_squeeze, ""},
    {"aten.swapaxes", map_transpose, "axes"},
    {"aten.swapdims", map_transpose, ""},
    {"aten.t", map_transpose, "t"},
    {"aten.tensor_split", map_split, "tensor_split"},
    {"aten.transpose", map_transpose, ""},
    {"aten.unbind", map_unbind, ""},
    {"aten.unflatten", map_unflatten, ""},
    {"aten.unfold", map_unfold, ""},
    {"aten.unsafe_chunk", map_split, "chunk"},
    {"aten.unsafe_split", map_split, "split"},
    {"aten.unsafe_split_with_sizes", map_split, ""},
    {"aten.unsqueeze", map_unsqueeze, ""},
    {"aten.view", map_view, ""},
    {"aten.view_as", map_view_as, ""},
    {"aten.vsplit", map_split, "v"},
};
static_assert(sorted(kMappings));

/// base with [start, end) of an axis replaced.
ValueId replace_range(Call& c, ValueId base, ValueId part, int64_t axis, const Scalar& start, const Scalar& end) {
  std::vector<ValueId> parts;
  if (!start.is(0)) parts.push_back(c.slice(base, axis, kStart, start));
  parts.push_back(part);
  const Dim size = c.dim(base, axis);
  const bool to_end = end.known && (end.integer == INT64_MAX || (size.known() && end.integer >= size.size));
  if (!to_end) parts.push_back(c.slice(base, axis, end, kEnd));
  return c.concat(std::move(parts), axis);
}

ValueId inverse_transpose(Call& c, ValueId x, const std::vector<int64_t>& order) {
  std::vector<int64_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return c.transpose(x, inverse);
}

/// Start and end of a slice as sizes that are not negative, with start <= end <= size, where the size is known.
bool settle(const Dim& size, Scalar& start, Scalar& end) {
  const auto one = [&](Scalar& s) {
    if (!s.known) return size.known() || true;
    if (s.integer < 0) {
      if (!size.known()) return false;
      s.integer = std::max<int64_t>(0, s.integer + size.size);
    }
    if (size.known() && s.integer != INT64_MAX) s.integer = std::min(s.integer, size.size);
    return true;
  };
  if (!one(start) || !one(end)) return false;
  if (start.known && end.known && end.integer < start.integer) end = start;
  return true;
}

/// `base` with what `view`, a target of the tables, shows of it replaced by `written`: the same view of the elements'
/// numbers says where each written element goes.
ValueId put_by_places(Call& c, std::string_view view, ValueId base, ValueId written, size_t output) {
  const int64_t count = c.type(base).elements();
  const Argument* self = nullptr;
  for (const NamedArgument& a : c.node().inputs) {
    if (a.value.kind == ArgumentKind::kTensor && !self) self = &a.value;
  }
  const Mapping* mapping = find_mapping(view);
  if (count < 0 || !self || !mapping) {
    c.fail("this view cannot be written through", std::string(view));
    return base;
  }
  const ValueId numbers = c.add("range", {c.constant_int(0), c.constant_int(count), c.constant_int(1)});
  Handle h;
  h.value = c.reshape(numbers, c.sizes_of(base));
  if (!c.ok()) return base;
  const int before = c.handle_of(self->text);
  c.scope().tensors[self->text] = c.builder().add_handle(h);
  Call call(c.builder(), c.scope(), c.node(), {}, mapping->parameter);
  mapping->map(call);
  c.scope().tensors[self->text] = before;
  if (!call.ok() || output >= call.given_outputs().size()) {
    c.fail("this view cannot be written through", call.rule());
    return base;
  }
  const std::vector<int64_t> flat = {-1};
  const ValueId at = c.reshape(call.given_outputs()[output], flat);
  const ValueId y = c.add("scatter_elements", {c.reshape(base, flat), at, c.reshape(written, flat)});
  return c.reshape(y, c.sizes_of(base));
}

}  // namespace

std::span<const Mapping> view_mappings() {
  return kMappings;
}

void write_through_view(Call& c, ValueId base, ValueId written, size_t output) {
  std::string_view target = c.node().target;
  target.remove_prefix(std::min(target.size(), sizeof("torch.ops.aten.") - 1));
  const std::string_view op = target.substr(0, target.find('.'));
  const int rank = c.rank(base);
  if (op == "view" || op == "reshape" || op == "flatten" || op == "unflatten" || op == "unsqueeze" || op == "squeeze" ||
      op == "view_as" || op == "reshape_as" || op == "_unsafe_view" || op == "_reshape_alias") {
    return c.output(c.reshape(written, c.sizes_of(base)));
  }
  if (op == "transpose" || op == "swapdims")
    return c.output(rank < 2 ? written : c.swap(written, c.axis("dim0", rank), c.axis("dim1", rank)));
  if (op == "swapaxes")
    return c.output(rank < 2 ? written : c.swap(written, c.axis("axis0", rank), c.axis("axis1", rank)));
  if (op == "t") return c.output(rank < 2 ? written : c.swap(written, 0, 1));
  if (op == "mT" || op == "adjoint") return c.output(c.swap(written, -2, -1));
  if (op == "permute") {
    const std::vector<int64_t> order = permutation(c, rank);
    return c.ok() ? c.output(inverse_transpose(c, written, order)) : void();
  }
  if (op == "movedim") {
    const std::vector<int64_t> order = movedim_order(c, rank);
    return c.ok() ? c.output(inverse_transpose(c, written, order)) : void();
  }
  if (op == "select" || op == "unbind") {
    const int64_t axis = op == "select" ? c.axis("dim", rank) : c.axis("dim", rank, 0);
    Scalar at = op == "select" ? c.scalar("index") : Scalar::of_int(static_cast<int64_t>(output));
    const Dim size = c.dim(base, axis);
    if (at.known && at.integer < 0) {
      if (!size.known()) return c.fail("a negative index into a symbolic dimension");
      at.integer += size.size;
    }
    return c.output(replace_range(c, base, c.unsqueeze(written, {axis}), axis, at, c.add_sizes(at, Scalar::of_int(1))));
  }
  if (op == "slice") {
    SliceOf s = slice_of(c, rank);
    const Dim size = c.dim(base, s.axis);
    if (!c.ok() || !settle(size, s.start, s.end)) return c.fail("a slice from the end of a symbolic dimension");
    if (s.step == 1) return c.output(replace_range(c, base, written, s.axis, s.start, s.end));
    if (!size.known() || !s.start.known || !s.end.known) return c.fail("a slice with a step of a symbolic dimension");
    // Every step-th place takes the next written element; the others keep theirs.
    std::vector<int64_t> from;
    int64_t next = size.size;
    for (int64_t i = 0; i < size.size; ++i) {
      const bool hit =
          i >= s.start.integer && i < std::min(s.end.integer, size.size) && (i - s.start.integer) % s.step == 0;
      from.push_back(hit ? next++ : i);
    }
    return c.output(c.add("gather", {c.concat({base, written}, s.axis), c.constant_ints(from)}, {{"axis", s.axis}}));
  }
  if (op == "narrow") {
    const int64_t axis = c.axis("dim", rank);
    const Scalar start = c.scalar("start");
    return c.output(replace_range(c, base, written, axis, start, c.add_sizes(start, c.scalar("length"))));
  }
  if (op == "split" || op == "chunk" || op == "split_with_sizes" || op == "tensor_split") {
    const int64_t axis = c.axis("dim", rank, 0);
    std::vector<ValueId> parts;
    const Mapping* mapping = find_mapping(str_cat("aten.", op));
    Call again(c.builder(), c.scope(), c.node(), {}, mapping->parameter);
    const std::vector<int64_t> sizes = split_sizes(again, base, axis);
    if (!again.ok() || output >= sizes.size()) return c.fail("parts of a split");
    int64_t start = 0;
    for (size_t i = 0; i < output; ++i) start += sizes[i];
    return c.output(
        replace_range(c, base, written, axis, Scalar::of_int(start), Scalar::of_int(start + sizes[output])));
  }
  std::string_view view = c.node().target;
  view.remove_prefix(std::min(view.size(), sizeof("torch.ops.") - 1));
  c.output(put_by_places(c, view.substr(0, view.rfind('.')), base, written, output));
}

}  // namespace pinnace::torch_import
