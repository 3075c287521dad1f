// softmax and log_softmax of floats: a workgroup per slice.
#include "backends/gpu/lowering.h"
#include "backends/gpu/softmax/params.h"
#include "ops/move.h"

namespace pinnace::gpu {
namespace {

Status softmax(NodeLowering& n, bool logarithm) {
  PINNACE_TRY(n.require_float(0));
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in(0).rank()));
  const AxisView v = view_axis(n.in(0).shape, axis);
  const TensorId x = n.dense(0), y = n.make_dense();
  const int64_t slices = v.outer * v.inner;
  n.loops(3 * shared_turns(v.size) + 2 * kTreeTurns);
  n.step(KernelId::softmax, SoftmaxConstants{.LOG = logarithm},
         SoftmaxParams{.slices = slices, .size = v.size, .inner = v.inner}, {x, y}, row_groups(slices),
         static_cast<double>(slices * v.size * 8));
  return {};
}

}  // namespace

Status lower_softmax(NodeLowering& n) {
  return softmax(n, false);
}

Status lower_log_softmax(NodeLowering& n) {
  return softmax(n, true);
}

}  // namespace pinnace::gpu
