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
