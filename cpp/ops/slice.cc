// slice: every step-th element of x from start to end (not included), per axis, as x[start:end:step] of numpy.
//   x       [...]  any type
//   starts  [n]  i32 | i64; negative counts from the end; then cut to the axis
//   ends    [n]  likewise
//   axes    [n]  i32 | i64, optional: which axes; left out: the first n
//   steps   [n]  i32 | i64, optional, not 0: left out: 1; negative goes backwards
//   y       as x
// Sizes are exact where an axis is untouched, where start, end, step and size are known, and where all of a symbol is
// taken; else unknown, with a bound. Source: ONNX Slice, opset 13.
#include <algorithm>

#include "ops/move.h"

namespace pinnace {
namespace {
/// Where one axis is cut; known as far as inputs are.
struct Cut {
  KnownInt start{true, 0, -1}, end{true, INT64_MAX, -1}, step{true, 1, -1};
};
using Ints = std::vector<KnownInt>;

Ints all_known(const std::vector<int64_t>& values) {
  Ints known;
  for (int64_t v : values) known.push_back({true, v, -1});
  return known;
}

/// One Cut per axis of x. The four lists have the same length.
Result<std::vector<Cut>> cuts_by_axis(const NodeView& node, int rank, const Ints& starts, const Ints& ends,
                                      std::span<const int64_t> axes, const Ints& steps) {
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    return node.error("starts, ends, axes and steps have ", starts.size(), ", ", ends.size(), ", ", axes.size(),
                      " and ", steps.size(), " elements");
  }
  PINNACE_TRY(node.axes(axes, rank).status());
  std::vector<Cut> cuts(static_cast<size_t>(rank));
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i].known && steps[i].value == 0) return node.error("step of axis ", axes[i], " is 0");
    cuts[static_cast<size_t>(axes[i] < 0 ? axes[i] + rank : axes[i])] = {starts[i], ends[i], steps[i]};
  }
  return cuts;
}

/// First index and count of a cut whose numbers are all known.
std::pair<int64_t, int64_t> taken(const Cut& cut, int64_t size) {
  const int64_t step = std::max(cut.step.value, -INT64_MAX);  // so that -step fits
  const auto place = [&](int64_t at, int64_t low, int64_t high) {
    return std::clamp(at < 0 ? at + size : at, low, high);
  };
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const int64_t start = place(cut.start.value, low, high), end = place(cut.end.value, low, high);
  const int64_t distance = step > 0 ? end - start : start - end;
  return {start, distance <= 0 ? 0 : (distance - 1) / (step > 0 ? step : -step) + 1};
}

Dim cut_size(const Cut& cut, const Dim& d) {
  const bool known = cut.start.known && cut.end.known && cut.step.known;
  if (known && d.known()) return taken(cut, d.size).second;
  if (d.known() && d.size == 0) return 0;
  // All of the axis: exporters write INT32_MAX or INT64_MAX for the end.
  const bool to_end =
      (cut.end.known && cut.end.value >= INT32_MAX) || (cut.end.symbol >= 0 && cut.end.symbol == d.symbol);
  const bool to_begin = cut.end.known && cut.end.value <= -INT32_MAX;
  if (cut.start.known && cut.step.known) {
    if (cut.step.value == 1 && cut.start.value == 0 && to_end) return d;
    if (cut.step.value == -1 && (cut.start.value == -1 || cut.start.value >= INT32_MAX) && to_begin) return d;
  }
  if (!known) return dim_at_most(d);
  int64_t bound = dim_bound(d);
  const int64_t start = cut.start.value, end = cut.end.value, step = cut.step.value;
  if (step > 0 && (start < 0) == (end < 0) && !to_end) {  // the distance does not depend on the size
    if (start >= end) return 0;
    const int64_t count = (end - start - 1) / step + 1;
    bound = bound < 0 ? count : std::min(bound, count);
  } else if (step > 0 && start < 0 && start > -INT32_MAX && to_end) {
    bound = bound < 0 ? -start : std::min(bound, -start);
  }
  return Dim::unknown(bound);
}

std::vector<int64_t> first_axes(size_t count) {
  std::vector<int64_t> axes(count);
  for (size_t i = 0; i < count; ++i) axes[i] = static_cast<int64_t>(i);
  return axes;
}

Result<TensorType> slice_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  TensorType y{x.dtype, {}, nullptr};
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 0));
  for (const Dim& d : x.shape) y.shape.push_back(dim_at_most(d));
  Dim count;  // how many axes are cut
  for (int i = 1; i < 5; ++i) {
    if (!node.has_input(i)) continue;
    PINNACE_ASSIGN(const Dim length, vector_length(node, i, false));
    const auto merged = dim_merge(count, length);
    if (!merged) return node.error("input ", i, " is ", node.input(i), ", must have ", count.size, " elements");
    count = *merged;
  }
  if (!count.known()) return y;
  if (count.size > most_axes(x)) {
    return node.error("starts has ", count.size, " elements, which is more than the axes of ", x);
  }
  const auto n = static_cast<size_t>(count.size);
  std::vector<int64_t> axes = first_axes(n);
  if (node.has_input(3)) {
    const auto named = known_ints(node, 3);
    if (!named) return y;
    axes = *named;
  }
  const Ints unknown(n);
  PINNACE_ASSIGN(
      const auto cuts,
      cuts_by_axis(node, x.rank(), node.input_known(1).value_or(unknown), node.input_known(2).value_or(unknown), axes,
                   node.has_input(4) ? node.input_known(4).value_or(unknown) : Ints(n, KnownInt{true, 1, -1})));
  for (size_t d = 0; d < cuts.size(); ++d) y.shape[d] = cut_size(cuts[d], x.shape[d]);
  return y;
}

Status slice_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  const Ints starts = all_known(load_indices(in[1])), ends = all_known(load_indices(in[2]));
  const bool has_axes = in.size() > 3 && in[3].present(), has_steps = in.size() > 4 && in[4].present();
  PINNACE_ASSIGN(const auto cuts,
                 cuts_by_axis(node, x.rank(), starts, ends, has_axes ? load_indices(in[3]) : first_axes(starts.size()),
                              has_steps ? all_known(load_indices(in[4])) : Ints(starts.size(), KnownInt{true, 1, -1})));
  if (y.elements() == 0) return {};
  std::vector<int64_t> strides = row_major_strides(x.type->shape);
  int64_t first = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    first += taken(cuts[d], x.type->shape[d].size).first * strides[d];
    // A step beyond the axis takes one element, so its stride is never used.
    strides[d] = y.type->shape[d].size > 1 ? strides[d] * cuts[d].step.value : 0;
  }
  const size_t bytes = element_bytes(x.dtype());
  copy_strided(node.threads(), y.type->shape, x.bytes + static_cast<size_t>(first) * bytes, strides, y.bytes,
               row_major_strides(y.type->shape), bytes);
  return {};
}
}  // namespace

PINNACE_OP(slice){
    .name = "slice",
    .inputs = {{"x", kBytewise},
               {"starts", kIndices, 'I'},
               {"ends", kIndices, 'I'},
               {"axes", kIndices, 'I', Arity::kOptional},
               {"steps", kIndices, 'I', Arity::kOptional}},
    .type = slice_type,
    .reference = slice_reference,
    .traits = Trait::kMoves,
    .work = Work::kCopied,
};
}  // namespace pinnace
