// What depends on the order of elements: the largest and their places.
#include "backends/gpu/lowering.h"
#include "backends/gpu/sort/params.h"
#include "ops/move.h"

namespace pinnace::gpu {
namespace {

/// A slice is looked through once per element that is wanted.
constexpr int64_t kMostLooks = int64_t{1} << 28;
/// Loop turns of a dispatch, which ends after so many elements and leaves the others to the next: half of what software
/// Vulkan goes through.
constexpr int64_t kDispatchTurns = int64_t{1} << 15;
/// Workgroups that keep a device busy.
constexpr int64_t kBusy = 64;

/// values: the output that takes them, -1 for places only.
Status top(NodeLowering& n, int axis, int64_t k, bool smallest, bool last, bool nan_first, int values, int places) {
  const bool floats = is_device_float(n.in(0).dtype);
  const AxisView v = view_axis(n.in(0).shape, axis);
  if (v.size == 0) return n.refuse(Rule::kAttribute, "an axis without elements");
  if (v.size > 0 && k > kMostLooks / v.size)
    return n.refuse(Rule::kAttribute, str_cat("the first ", k, " of ", v.size));
  const int64_t slices = v.outer * v.inner;
  const TensorId x = n.dense(0), at = n.make_dense(places), y = values < 0 ? at : n.make_dense(values);
  const SpecValues constants =
      floats
          ? SpecValues(TopKConstants{.SMALLEST = smallest, .LAST = last, .VALUES = values >= 0, .NAN_FIRST = nan_first})
          : TopKInt32Constants{.SMALLEST = smallest, .LAST = last, .VALUES = values >= 0};
  const int64_t look = shared_turns(v.size) + kTreeTurns;  // of one element that is found
  const int64_t most = std::max<int64_t>(1, kDispatchTurns / (1 + look));
  for (int64_t first = 0; first < k; first += most) {
    const int64_t found = std::min(most, k - first);
    n.loops(loop_turns(found, look));
    n.step(
        floats ? KernelId::top_k : KernelId::top_k_int32, constants,
        TopKParams{.slices = slices, .size = v.size, .inner = v.inner, .k = k, .first = first, .last = first + found},
        {x, y, at}, row_groups(slices),
        // Few slices leave most of the device idle: they count as if all of it worked.
        static_cast<double>(std::max(slices, kBusy)) * static_cast<double>(v.size) * static_cast<double>(found));
  }
  return {};
}

Status arg_reduce(NodeLowering& n, bool smallest) {
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in(0).rank()));
  return top(n, axis, 1, smallest, n.view().attr_int("select_last_index") != 0, true, -1, 0);
}

}  // namespace

Status lower_arg_max(NodeLowering& n) {
  return arg_reduce(n, false);
}

Status lower_arg_min(NodeLowering& n) {
  return arg_reduce(n, true);
}

Status lower_top_k(NodeLowering& n) {
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in(0).rank()));
  const bool smallest = n.view().attr_int("largest") == 0;
  return top(n, axis, n.out().shape[static_cast<size_t>(axis)].size, smallest, false, !smallest, 0, 1);
}

}  // namespace pinnace::gpu
