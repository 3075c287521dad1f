// pad: x with elements added, or, where a pad is negative, cut off, at both ends of each axis.
//   x      [...]  any type
//   pads   [2 * n]  i64: n beginnings, then n ends; n is the rank of x, or the length of axes
//   value  [] or [1], optional, the type of x: the element of mode constant; left out: 0 (quantised: the zero point)
//   axes   [n]  i32 | i64, optional: the axes that pads speak of
//   mode   string, default "constant": "constant"; "reflect": mirrored without the edge; "edge"; "wrap": periodic
//   y      as x
// Place i of y takes place i - begin of x before modes apply, so cutting one end does not change what the other end
// repeats. Pads longer than x reflect or wrap several times; reflecting one element repeats it. An axis without
// elements can only be padded with a constant. Source: ONNX Pad, opset 25.
#include <algorithm>

#include "ops/move.h"

namespace pinnace {
namespace {
constexpr int64_t kLargestPad = int64_t{1} << 58;

/// [begin, end] per axis of x, from the elements of pads and axes.
Result<std::vector<std::pair<KnownInt, KnownInt>>> pads_by_axis(const NodeView& node, int rank,
                                                                std::span<const KnownInt> pads,
                                                                std::span<const int64_t> axes) {
  std::vector<std::pair<KnownInt, KnownInt>> by_axis(static_cast<size_t>(rank), {{true, 0, -1}, {true, 0, -1}});
  PINNACE_TRY(node.axes(axes, rank).status());
  if (pads.size() != 2 * axes.size()) {
    return node.error("pads has ", pads.size(), " elements, must have ", 2 * axes.size());
  }
  for (const KnownInt& pad : pads) {  // places are computed with pads: a limit that keeps sums within 64 bits
    if (pad.known && (pad.value > kLargestPad || pad.value < -kLargestPad)) {
      return node.error("pad ", pad.value, " is beyond ", kLargestPad);
    }
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    by_axis[static_cast<size_t>(axes[i] < 0 ? axes[i] + rank : axes[i])] = {pads[i], pads[i + axes.size()]};
  }
  return by_axis;
}

std::vector<int64_t> all_axes(int rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  return axes;
}

Result<TensorType> pad_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  const std::string_view mode = node.attr_string("mode");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    return node.error("mode is '", mode, "', must be constant, reflect, edge or wrap");
  }
  TensorType y{x.dtype, Shape(x.shape.size()), nullptr};
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 0));
  PINNACE_ASSIGN(const Dim length, vector_length(node, 1, false));
  if (length.size > 2 * most_axes(x)) {
    return node.error("pads has ", length.size, " elements, which is more than two for each axis of ", x);
  }
  if (node.has_input(2)) PINNACE_TRY(check_one_number(node, 2));
  std::vector<int64_t> axes = all_axes(x.rank());
  if (node.has_input(3)) {
    PINNACE_TRY(vector_length(node, 3, false).status());
    const auto named = known_ints(node, 3);
    if (!named) return y;
    axes = *named;
  }
  const auto pads = node.input_known(1);
  if (!pads && !length.known()) return y;
  const auto given = pads ? *pads : std::vector<KnownInt>(static_cast<size_t>(length.size));
  PINNACE_ASSIGN(const auto by_axis, pads_by_axis(node, x.rank(), given, axes));
  for (size_t d = 0; d < y.shape.size(); ++d) {
    const auto& [begin, end] = by_axis[d];
    if (!begin.known || !end.known) continue;
    const int64_t total = begin.value + end.value;
    const Dim from = x.shape[d];
    if (begin.value == 0 && end.value == 0) {
      y.shape[d] = from;
    } else if (from.known()) {
      const int64_t size = saturating_add(from.size, total);
      if (size < 0) {
        return node.error("pads ", begin.value, " and ", end.value, " cut more than axis ", d, " of ", x);
      }
      if (from.size == 0 && size > 0 && mode != "constant") {
        return node.error("axis ", d, " of ", x, " has nothing to repeat");
      }
      y.shape[d] = size;
    } else if (from.max >= 0 && saturating_add(from.max, total) != INT64_MAX) {
      y.shape[d] = Dim::unknown(std::max<int64_t>(from.max + total, 0));
    }
  }
  return y;
}

/// Where place `at` of an axis of `size` elements comes from; -1: the constant.
int64_t source_of(int64_t at, int64_t size, std::string_view mode) {
  if (at >= 0 && at < size) return at;
  if (mode == "constant") return -1;
  if (mode == "edge") return at < 0 ? 0 : size - 1;
  const int64_t period = mode == "wrap" ? size : size > 1 ? 2 * (size - 1) : 1;
  const int64_t in_period = ((at % period) + period) % period;
  return in_period < size ? in_period : period - in_period;
}

Status pad_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  const int rank = x.rank();
  const std::vector<int64_t> ints = load_indices(in[1]);
  std::vector<KnownInt> pads(ints.size());
  for (size_t i = 0; i < ints.size(); ++i) pads[i] = {true, ints[i], -1};
  const bool has_axes = in.size() > 3 && in[3].present();
  PINNACE_ASSIGN(const auto by_axis, pads_by_axis(node, rank, pads, has_axes ? load_indices(in[3]) : all_axes(rank)));
  const std::string_view mode = node.attr_string("mode");

  int64_t constant = 0;  // the bytes of the element
  const size_t bytes = element_bytes(x.dtype());
  if (in.size() > 2 && in[2].present()) {
    std::memcpy(&constant, in[2].bytes, bytes);
  } else if (x.type->quantized()) {
    constant = x.type->quantization->zero_points[0];
  }
  int64_t count = 0;
  for (const Dim& d : y.type->shape) count += d.size;
  PINNACE_ASSIGN(auto places, Scratch<int64_t>::allocate(count, node.label()));
  int64_t* place = places.data();
  for (size_t d = 0; d < by_axis.size(); ++d) {
    for (int64_t i = 0; i < y.type->shape[d].size; ++i) {
      *place++ = source_of(i - by_axis[d].first.value, x.type->shape[d].size, mode);
    }
  }
  copy_by_places(node.threads(), x, y, places.span(), reinterpret_cast<const std::byte*>(&constant));
  return {};
}
}  // namespace

PINNACE_OP(pad){
    .name = "pad",
    .inputs = {{"x", kAny, 'T'},
               {"pads", kI64},
               {"value", kAny, 'T', Arity::kOptional},
               {"axes", kIndices, 0, Arity::kOptional}},
    .attrs = {string_attr("mode", "constant")},
    .type = pad_type,
    .reference = pad_reference,
    .traits = Trait::kMoves,
    .work = Work::kCopied,
};
}  // namespace pinnace
