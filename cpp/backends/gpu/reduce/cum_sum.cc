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
  const int64_t lanes = v.outer * v.inner;
  std::vector<int32_t> spec = {n.view().attr_int("exclusive") ? 1 : 0, n.view().attr_int("reverse") ? 1 : 0};
  const CumSumParams params{.lanes = lanes, .size = v.size, .inner = v.inner};
  const TensorId x = n.dense(0), y = n.make_dense();
  const auto work = static_cast<double>(lanes * v.size * 8);
  if (is_device_float(n.in(0).dtype)) {
    n.step(KernelId::cum_sum, std::move(spec), params, {x, y}, row_groups(lanes), work);
    return {};
  }
  const int32_t held = held_as(n.in(0).dtype);
  spec.push_back(held);
  n.step(KernelId::cum_sum_int32, std::move(spec), params, {x, y, held == held_as(DType::kI64) ? n.error_record() : y},
         row_groups(lanes), work);
  return {};
}

}  // namespace pinnace::gpu
