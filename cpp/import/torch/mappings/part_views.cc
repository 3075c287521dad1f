// Operators whose result shows some elements of their input, in the same memory: select, slice, split, diagonal,
// unfold, as_strided.
#include <algorithm>
#include <map>
#include <optional>

#include "import/torch/views.h"

namespace pinnace::torch_import {
namespace {

void map_select(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t axis = c.axis("dim", c.rank(x));
  const Scalar index = c.scalar("index");
  c.shares(Sharing::kView);
  c.output(c.gather(x, c.as_tensor({kNoValue, index}, DType::kI64), axis));
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

/// Parts of these sizes, of which some are computed.
std::vector<ValueId> split_at(Call& c, ValueId x, const std::vector<Scalar>& sizes, int64_t axis) {
  std::vector<ValueId> parts;
  Scalar start = kStart;
  for (size_t i = 0; i < sizes.size() && c.ok(); ++i) {
    const Scalar end = i + 1 < sizes.size() ? c.add_sizes(start, sizes[i]) : kEnd;
    parts.push_back(c.slice(x, axis, start, end));
    start = end;
  }
  return parts;
}

void map_split(Call& c) {
  const ValueId x = c.tensor("self");
  const std::string_view form = c.parameter();
  const int64_t usual = form == "d" ? 2 : form == "h" && c.rank(x) > 1 ? 1 : 0;
  const int64_t axis = c.axis("dim", c.rank(x), usual);
  if (form == "sizes" && c.given("split_sizes")) {
    const std::vector<Scalar> sizes = c.sizes("split_sizes");
    if (!std::ranges::all_of(sizes, [](const Scalar& size) { return size.known; })) {
      c.shares(Sharing::kView);
      return c.outputs(sizes.size() == 1 ? std::vector<ValueId>{x} : split_at(c, x, sizes, axis));
    }
  }
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
  const int64_t a = c.axis("dim1", rank, last ? -2 : 0), b = c.axis("dim2", rank, last ? -1 : 1);
  if (rank < 2 || a == b) return c.fail("diagonal of equal dimensions");
  c.shares(Sharing::kView);
  c.output(diagonal_of(c, x, a, b, c.integer("offset", 0)));
}

/// Dimension axis + 1 becomes the last one.
ValueId with_last(Call& c, ValueId x, int64_t axis) {
  std::vector<int64_t> order;
  for (int i = 0; i < c.rank(x); ++i) {
    if (i != axis + 1) order.push_back(i);
  }
  order.push_back(axis + 1);
  return c.transpose(x, order);
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
  if (step < 1 || size < 0 || (length.known() && size > length.size)) {
    return c.fail("unfold beyond the dimension", str_cat(size, " in steps of ", step));
  }
  if (!length.known()) {
    c.shares(Sharing::kView);
    return c.output(with_last(c, windows_of_dynamic_axis(c, x, axis, size, step), axis));
  }
  const int64_t windows = (length.size - size) / step + 1;
  if (windows > (1 << 22) / std::max<int64_t>(size, 1))
    return c.fail("unfold into this many windows", str_cat(windows));
  std::vector<int64_t> at;
  for (int64_t w = 0; w < windows; ++w) {
    for (int64_t i = 0; i < size; ++i) at.push_back(w * step + i);
  }
  c.shares(Sharing::kView);
  const ValueId index = c.reshape(c.constant_ints(at), std::vector<int64_t>{windows, size});
  c.output(with_last(c, c.gather(x, index, axis), axis));
}

/// Where each element of a tensor with these strides lies, counted from its first one; nothing if there are more than
/// 2^22, or some lie beyond 2^54.
std::optional<std::vector<int64_t>> positions(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                                              int64_t start) {
  constexpr int64_t kFarthest = int64_t{1} << 48;  // along each of at most 2^6 dimensions: sums do not overflow
  int64_t count = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t size = sizes[d], limit = kFarthest / std::max<int64_t>(size, 1);
    if (size < 0 || (size > 0 && count > (1 << 22) / size)) return std::nullopt;
    if (size > 1 && (strides[d] > limit || strides[d] < -limit)) return std::nullopt;
    count *= size;
  }
  if (start > kFarthest || start < -kFarthest || sizes.size() > 64) return std::nullopt;
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
  const auto own_places = positions(own_sizes, own_strides, first);
  const auto wanted_places = positions(sizes, strides, c.integer("storage_offset", first));
  if (!own_places || !wanted_places) return c.fail("as_strided of this many elements, or this far apart");
  const std::vector<int64_t>& own = *own_places;
  std::vector<int64_t> wanted = *wanted_places;
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

constexpr Mapping kMappings[] = {
    {"aten.as_strided", map_as_strided, ""},
    {"aten.chunk", map_split, "chunk"},
    {"aten.diagonal", map_diagonal, ""},
    {"aten.dsplit", map_split, "d"},
    {"aten.hsplit", map_split, "h"},
    {"aten.linalg_diagonal", map_diagonal, ""},
    {"aten.narrow", map_narrow, ""},
    {"aten.select", map_select, ""},
    {"aten.slice", map_slice, ""},
    {"aten.split", map_split, "split"},
    {"aten.split_with_sizes", map_split, "sizes"},
    {"aten.tensor_split", map_split, "tensor_split"},
    {"aten.unbind", map_unbind, ""},
    {"aten.unfold", map_unfold, ""},
    {"aten.unsafe_chunk", map_split, "chunk"},
    {"aten.unsafe_split", map_split, "split"},
    {"aten.unsafe_split_with_sizes", map_split, ""},
    {"aten.vsplit", map_split, "v"},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> part_view_mappings() {
  return kMappings;
}

SliceOf slice_of(Call& c, int rank) {
  return {c.axis("dim", rank, 0), c.scalar("start", kStart), c.scalar("end", kEnd), c.integer("step", 1)};
}

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
    step = chunks < 1 ? 0 : size.size / chunks + (size.size % chunks != 0 ? 1 : 0);
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

ValueId diagonal_of(Call& c, ValueId x, int64_t a, int64_t b, int64_t offset) {
  constexpr int64_t kLongest = 1 << 20;  // known diagonals are made of one index per element
  const int rank = c.rank(x);
  const Dim rows = c.dim(x, a), columns = c.dim(x, b);
  offset = std::max(offset, -INT64_MAX);  // beyond any size, and can be negated
  const int64_t skip_rows = std::max<int64_t>(-offset, 0), skip_columns = std::max<int64_t>(offset, 0);
  // The two axes to the end, as one axis of rows * columns, from which the diagonal is gathered.
  std::vector<int64_t> order;
  for (int i = 0; i < rank; ++i) {
    if (i != a && i != b) order.push_back(i);
  }
  order.push_back(a);
  order.push_back(b);
  const ValueId moved = c.transpose(x, order);
  if (!c.ok()) return x;
  std::vector<Scalar> sizes = c.sizes_of(moved);
  const Scalar height = sizes[static_cast<size_t>(rank - 2)], width = sizes[static_cast<size_t>(rank - 1)];
  sizes.resize(static_cast<size_t>(rank - 2));
  sizes.push_back(c.multiply_sizes(height, width));
  ValueId places = kNoValue;
  if (rows.known() && columns.known()) {
    const int64_t count = std::max<int64_t>(0, std::min(rows.size - skip_rows, columns.size - skip_columns));
    if (count > kLongest) {
      c.fail("diagonal of this length", str_cat(count));
      return x;
    }
    std::vector<int64_t> at;
    for (int64_t i = 0; i < count; ++i) at.push_back((i + skip_rows) * columns.size + i + skip_columns);
    places = c.constant_ints(at);
  } else {
    if (offset > kLongest || offset < -kLongest) {
      c.fail("a diagonal of a dynamic size this far from the main one", str_cat(offset));
      return x;
    }
    // Negative counts, of diagonals beyond the matrix, are ranges of no element.
    const Scalar down = c.add_sizes(height, Scalar::of_int(-skip_rows));
    const Scalar across = c.add_sizes(width, Scalar::of_int(-skip_columns));
    Scalar count = skip_rows > 0 ? down : across;
    if (rows.symbol < 0 || rows != columns)
      count = Scalar::of_value(Scalar::Kind::kInt, c.add("min", {c.size_value(down), c.size_value(across)}));
    const auto number = [&](const Scalar& size) { return c.as_tensor({kNoValue, size}, DType::kI64); };
    const ValueId each = c.add("range", {number(kStart), number(count), number(Scalar::of_int(1))});
    const Scalar first = c.add_sizes(c.multiply_sizes(Scalar::of_int(skip_rows), width), Scalar::of_int(skip_columns));
    places = c.add("mul", {each, number(c.add_sizes(width, Scalar::of_int(1)))});
    places = c.add("add", {places, number(first)});
  }
  return c.gather(c.reshape(moved, sizes), places, rank - 2);
}

ValueId windows_of_dynamic_axis(Call& c, ValueId x, int64_t axis, int64_t size, int64_t step) {
  // A window is so many pieces of `step` elements, of the last of which it may have a part alone.
  constexpr int64_t kMostPieces = 256;
  const int64_t pieces = (size + step - 1) / step;
  if (size < 1 || pieces > kMostPieces) {
    c.fail("windows of a dynamic dimension of this size", str_cat(size, " in steps of ", step));
    return kNoValue;
  }
  const Scalar later = c.add_sizes(c.size_of(x, axis), Scalar::of_int(step - size));
  if (!c.ok()) return kNoValue;
  const Scalar windows =
      Scalar::of_value(Scalar::Kind::kInt, c.add("div", {c.size_value(later), c.constant_ints({step})}));
  const Scalar covered = c.multiply_sizes(windows, Scalar::of_int(step));
  if (const int64_t beyond = pieces * step - size; beyond > 0) {  // read by the last window's last piece
    std::vector<int64_t> amounts(2 * static_cast<size_t>(c.type(x).rank()), 0);
    amounts[static_cast<size_t>(axis + c.type(x).rank())] = beyond;
    x = c.paired_like(x, c.add("pad", {x, c.constant_ints(amounts), c.constant(0, c.dtype_of(x))}));
  }
  if (!c.ok()) return kNoValue;
  std::vector<Scalar> sizes = c.sizes_of(x);
  sizes[static_cast<size_t>(axis)] = windows;
  sizes.insert(sizes.begin() + axis + 1, Scalar::of_int(step));
  std::vector<ValueId> parts;
  for (int64_t i = 0; i < pieces; ++i) {
    const Scalar end = c.add_sizes(covered, Scalar::of_int(i * step));
    parts.push_back(c.reshape(c.slice(x, axis, Scalar::of_int(i * step), end), sizes));
  }
  const ValueId joined = parts.size() == 1 ? parts[0] : c.concat(std::move(parts), axis + 1);
  return pieces * step == size ? joined : c.slice(joined, axis + 1, Scalar::of_int(0), Scalar::of_int(size));
}

}  // namespace pinnace::torch_import
