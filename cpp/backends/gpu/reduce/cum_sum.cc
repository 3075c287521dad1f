// Running sums along an axis, added in one order.
#include "backends/gpu/lowering.h"
#include "backends/gpu/reduce/params.h"
#include "ops/move.h"

namespace pinnace::gpu {

Status lower_cum_sum(NodeLowering& n) {
  const auto given = n.view().input_ints(1);
  if (!given || given->size() != 1) return n.refuse(Rule::kConstant, "axis");
  PINNACE_ASSIGN(const int axis, n.view().axis(given->at(0), n.in(0).rank()));
  const AxisView v = view_axis(n.in(0).shape, axis);
  const int64_t slices = v.outer * v.inner;
  const bool exclusive = n.view().attr_int("exclusive") != 0, reverse = n.view().attr_int("reverse") != 0;
  const CumSumParams params{.slices = slices, .size = v.size, .inner = v.inner};
  const TensorId x = n.dense(0), y = n.make_dense();
  const auto work = static_cast<double>(slices * v.size * 8);
  n.loops(shared_turns(v.size, kTreeTurns));
  if (is_device_float(n.in(0).dtype)) {
    n.step(KernelId::cum_sum, CumSumConstants{.EXCLUSIVE = exclusive, .REVERSE = reverse}, params, {x, y},
           row_groups(slices), work);
    return {};
  }
  const int32_t held = held_as(n.in(0).dtype);
  n.step(KernelId::cum_sum_int32, CumSumInt32Constants{.EXCLUSIVE = exclusive, .REVERSE = reverse, .HELD = held},
         params, {x, y, held == held_as(DType::kI64) ? n.error_record() : y}, row_groups(slices), work);
  return {};
}

}  // namespace pinnace::gpu
