// cum_sum: running sums along an axis: y[k] = x[0] + … + x[k].
//   x          [...]  numbers
//   axis       [] or [1]  i32 | i64
//   exclusive  int, default 0; 1: y[k] leaves out x[k]
//   reverse    int, default 0; 1: from the end
//   y          as x
// Floats are summed in double and each sum is rounded once; integers wrap. From a NaN on all sums are NaN. Source: ONNX
// CumSum, opset 14.
#include "ops/cum_fold.h"

namespace pinnace {
namespace {
Status cum_sum_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return cum_fold(node, in, out, 0, [](auto before, auto element) { return before + element; });
}
}  // namespace

PINNACE_OP(cum_sum){
    .name = "cum_sum",
    .inputs = {{"x", kNumbers}, {"axis", kIndices}},
    .attrs = {int_attr("exclusive", 0), int_attr("reverse", 0)},
    .type = cum_fold_type,
    .reference = cum_sum_reference,
    .in_place = 1,
};
}  // namespace pinnace
