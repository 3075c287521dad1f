// Padding: a copy into a region of what was filled before or, in the modes that repeat the input, gathers by tables of
// places.
#include "backends/gpu/index/places.h"
#include "backends/gpu/move/region.h"
#include "ops/move.h"

namespace pinnace::gpu {
namespace {

/// Where place `at` of an axis of `size` elements comes from.
int64_t source_of(int64_t at, int64_t size, std::string_view mode) {
  if (at >= 0 && at < size) return at;
  if (mode == "edge") return at < 0 ? 0 : size - 1;
  const int64_t period = mode == "wrap" ? size : size > 1 ? 2 * (size - 1) : 1;
  const int64_t in_period = (at % period + period) % period;
  return in_period < size ? in_period : period - in_period;
}

/// Output 0 = input 0 padded in a mode that repeats it, by one gather per axis that is padded; `begins`: what is added
/// in front of each dimension.
Status pad_by_places(NodeLowering& n, std::span<const int64_t> begins, std::string_view mode) {
  std::vector<int> padded;
  const Shape &from = n.in(0).shape, &to = n.out().shape;
  for (size_t d = 0; d < from.size(); ++d) {
    if (begins[d] != 0 || from[d].size != to[d].size) padded.push_back(static_cast<int>(d));
    if (from[d].size == 0) return n.refuse(Rule::kAttribute, "nothing to repeat");
  }
  if (padded.empty()) {
    n.alias(0, 0);
    return {};
  }
  TensorType current{n.in(0).dtype, from, nullptr};
  TensorId x = n.dense(0);
  for (int axis : padded) {
    const auto d = static_cast<size_t>(axis);
    const int64_t size = from[d].size;
    std::vector<int32_t> places;
    for (int64_t i = 0; i < to[d].size; ++i) {
      places.push_back(static_cast<int32_t>(source_of(i - begins[d], size, mode)));
    }
    current.shape[d] = to[d];
    const AxisView v = view_axis(current.shape, axis);
    const TensorId index = table(n, str_cat("axis ", axis), std::move(places));
    const TensorId y = axis == padded.back() ? n.make_dense() : n.make_scratch(current.elements(), current.dtype);
    gather_step(n, current.dtype, x, index, y, current.elements(), v.size, size, v.inner);
    x = y;
  }
  return {};
}

}  // namespace

Status lower_pad(NodeLowering& n) {
  PINNACE_TRY(check_region_rank(n, 0));
  const std::string_view mode = n.view().attr_string("mode");
  const auto pads = n.view().input_ints(1);
  const auto axes_given = n.has(3) ? n.view().input_ints(3) : std::nullopt;
  if (!pads) return n.refuse(Rule::kConstant, "pads");
  if (n.has(3) && !axes_given) return n.refuse(Rule::kConstant, "axes");
  const int rank = n.in(0).rank();
  const size_t count = pads->size() / 2;
  Region r;
  const Six from = dense_strides(n.in(0).shape), to = dense_strides(n.out().shape);
  r.from_stride = from;
  r.to_stride = to;
  r.size = six_sizes(n.in(0).shape);
  std::vector<int64_t> begins(static_cast<size_t>(rank));
  for (size_t i = 0; i < count; ++i) {
    PINNACE_ASSIGN(const int axis, n.view().axis(axes_given ? (*axes_given)[i] : static_cast<int64_t>(i), rank));
    const auto at = static_cast<size_t>(int64_t{6} - rank + axis);
    const int64_t before = (*pads)[i], after = (*pads)[i + count];
    begins[static_cast<size_t>(axis)] = before;
    // Negative pads cut off.
    r.from += std::max<int64_t>(0, -before) * from[at];
    r.to += std::max<int64_t>(0, before) * to[at];
    r.size[at] += std::min<int64_t>(0, before) + std::min<int64_t>(0, after);
    if (r.size[at] < 0) r.size[at] = 0;
  }
  if (mode != "constant") return pad_by_places(n, begins, mode);
  double real = 0;
  int64_t whole = n.in(0).quantized() ? scale_zero(n.in(0)).zero : 0;
  if (n.has(2)) {
    if (!n.constant(2)) return n.refuse(Rule::kConstant, "value");
    if (is_device_float(n.in(0).dtype)) {
      const std::vector<double> given = n.floats(2);
      if (given.size() != 1) return n.refuse(Rule::kConstant, "value");
      real = given[0];
    } else {
      const auto given = n.view().input_ints(2);
      if (!given || given->size() != 1) return n.refuse(Rule::kConstant, "value");
      whole = (*given)[0];
    }
    if (whole != static_cast<int32_t>(whole)) return n.refuse(Rule::kWide, str_cat("a value of ", whole));
  }
  const TensorId x = n.dense(0), y = n.make_dense();
  fill_step(n, y, real, whole);
  move_step(n, n.in(0).dtype, x, y, r);
  return {};
}

}  // namespace pinnace::gpu
