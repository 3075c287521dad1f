// What a write into a view does to the tensor that it shows; and the operators that do the same without memory in
// common, diagonal_scatter and as_strided_scatter.
#include <algorithm>

#include "import/torch/views.h"

namespace pinnace::torch_import {
namespace {

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

std::string_view without(std::string_view text, std::string_view start) {
  return text.starts_with(start) ? text.substr(start.size()) : text;
}

/// The target's name in the tables, without overload: "aten.expand".
std::string_view table_name(const NodeDef& node) {
  const std::string_view target = without(node.target, "torch.ops.");
  return target.substr(0, target.rfind('.'));
}

/// What `view` gives of `numbers` in the place of the tensor that it shows; kNoValue if it cannot be asked.
ValueId view_of_numbers(Call& c, const Handle& view, std::string_view target, ValueId numbers) {
  const Argument* self = shared_tensor(*view.node, view.output);
  const Mapping* mapping = find_mapping(target);
  if (!self || !mapping) {
    c.fail("this view cannot be written through", std::string(target));
    return kNoValue;
  }
  std::map<std::string, int, std::less<>>& tensors = view.scope->tensors;
  Handle h;
  h.value = numbers;
  Call call(c.builder(), *view.scope, *view.node, {}, mapping->parameter);
  const int before = call.handle_of(self->text);
  if (!call.ok()) c.fail(call.rule());
  if (!c.ok()) return kNoValue;
  tensors[self->text] = c.builder().add_handle(h);
  mapping->map(call);
  tensors[self->text] = before;
  if (call.ok() && view.output < call.given_outputs().size()) return call.given_outputs()[view.output];
  c.fail("this view cannot be written through", str_cat(target, call.ok() ? "" : ": ", call.rule()));
  return kNoValue;
}

/// The numbers of base's elements, rows first, in its shape; of a pair those of its numbers. kNoValue if the size is
/// symbolic.
ValueId numbers_of(Call& c, ValueId base) {
  const int64_t count = c.type(base).elements() / (c.is_pair(base) ? 2 : 1);
  if (count < 0) {
    c.fail("this view cannot be written through", "a tensor of symbolic size");
    return kNoValue;
  }
  const ValueId numbers = c.add("range", {c.constant_int(0), c.constant_int(count), c.constant_int(1)});
  return c.reshape(numbers, c.sizes_of(base));
}

/// `base` with `written` at these elements.
ValueId put(Call& c, ValueId base, ValueId places, ValueId written) {
  if (!c.ok()) return base;
  const std::vector<int64_t> flat = {-1};
  if (c.is_pair(base)) {  // both parts of a number at its place
    const ValueId rows = c.unsqueeze(c.reshape(places, flat), {1});
    const ValueId y = c.add("scatter_nd", {c.reshape(base, flat), rows, c.reshape(written, flat)});
    return c.reshape(c.paired_like(base, y), c.sizes_of(base));
  }
  const ValueId y =
      c.add("scatter_elements", {c.reshape(base, flat), c.reshape(places, flat), c.reshape(written, flat)});
  return c.reshape(y, c.sizes_of(base));
}

/// True if sizes or strides of the view are not numbers.
bool is_dynamic(const TensorMeta& meta) {
  const auto named = [](const SizeDef& size) { return !size.expression.empty(); };
  return std::ranges::any_of(meta.sizes, named) || std::ranges::any_of(meta.strides, named);
}

/// True if elements may have one place, as strides say it: each must be beyond all that the smaller ones reach.
bool overlaps(const TensorMeta& meta) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size - 1
  for (size_t i = 0; i < meta.sizes.size() && i < meta.strides.size(); ++i) {
    if (meta.sizes[i].expression.empty() && meta.sizes[i].value == 0) return false;
    if (meta.sizes[i].expression.empty() && meta.sizes[i].value == 1) continue;
    if (!meta.sizes[i].expression.empty() || !meta.strides[i].expression.empty()) return true;
    dims.emplace_back(meta.strides[i].value, meta.sizes[i].value - 1);
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (const auto& [stride, steps] : dims) {
    if (stride <= reach) return true;
    int64_t span = 0;
    if (__builtin_mul_overflow(stride, steps, &span) || __builtin_add_overflow(reach, span, &reach)) return true;
  }
  return false;
}

// The tensor with a view of it replaced: diagonal_scatter, as_strided_scatter
void map_view_scatter(Call& c) {
  const ValueId x = c.tensor("self"), source = c.cast(c.tensor("src"), c.dtype_of(x));
  if (c.type(source).elements() == 0) {
    c.ignore({"size", "stride", "storage_offset", "offset", "dim1", "dim2"});
    return c.output(x);
  }
  Handle view;
  view.node = &c.node();
  view.scope = &c.scope();
  const ValueId y = put(c, x, view_of_numbers(c, view, c.parameter(), numbers_of(c, x)), source);
  c.ignore({"size", "stride", "storage_offset", "offset", "dim1", "dim2"});
  c.output(y);
}

constexpr Mapping kMappings[] = {
    {"aten.as_strided_scatter", map_view_scatter, "aten.as_strided"},
    {"aten.diagonal_scatter", map_view_scatter, "aten.diagonal"},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> view_write_mappings() {
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
  if (op == "mT" || op == "adjoint" || op == "mH" || op == "matrix_H") {
    const ValueId y = c.swap(written, -2, -1);
    return c.output(op != "mT" && c.is_pair(base) ? conjugate(c, y) : y);
  }
  if (op == "view_as_real" || op == "view_as_complex") return c.output(written);
  if ((op == "_conj" || op == "conj") && c.is_pair(base)) return c.output(conjugate(c, written));
  if (op == "real" && c.is_pair(base)) return c.output(pair_of(c, written, part_of(c, base, 1)));
  if (op == "imag" && c.is_pair(base)) return c.output(pair_of(c, part_of(c, base, 0), written));
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
    if (size.size > (1 << 22)) return c.fail("a slice with a step of this many elements", str_cat(size.size));
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
  Handle view;
  view.node = &c.node();
  view.scope = &c.scope();
  view.output = output;
  c.output(put(c, base, view_of_numbers(c, view, table_name(c.node()), numbers_of(c, base)), written));
}

bool writes_by_places(const NodeDef& view) {
  static constexpr std::string_view kNames[] = {
      "aten.as_strided", "aten.broadcast_tensors", "aten.broadcast_to", "aten.diagonal", "aten.expand",
      "aten.expand_as",  "aten.linalg_diagonal",   "aten.meshgrid",     "aten.unfold"};
  return std::ranges::binary_search(kNames, table_name(view));
}

void write_by_places(Call& c, std::span<const Handle> views, ValueId base, ValueId written) {
  const Handle& inner = views.back();
  const TensorMeta* meta = Call(c.builder(), *inner.scope, *inner.node, {}, {}).meta(inner.output);
  const std::string_view writer = table_name(c.node());
  const bool equal = writer == "aten.fill_" || writer == "aten.zero_";  // in whatever order
  if (!equal && (!meta || overlaps(*meta))) {
    const char* why = meta && is_dynamic(*meta) ? "elements of a view of dynamic size may lie on one another"
                                                : "elements of the view lie on one another";
    return c.fail(why, std::string(table_name(*inner.node)));
  }
  ValueId places = numbers_of(c, base);
  for (const Handle& view : views) {
    if (c.ok()) places = view_of_numbers(c, view, table_name(*view.node), places);
  }
  c.output(put(c, base, places, written));
}

}  // namespace pinnace::torch_import
