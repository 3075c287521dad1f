// cum_max: the largest element so far along an axis, and where it was: y[k] = max(x[0], ..., x[k]).
//   x        [...]  numbers
//   axis     int, default 0
//   y        as x
//   indices  as x, i64: the last of equal places
// A NaN is taken and kept; of several the last one's index is given. ONNX has no such operator; PyTorch's cummax.
#include "ops/cum_extreme.h"

namespace pinnace {
namespace {
Status cum_max_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return cum_extreme(node, in, out, [](auto a, auto b) { return a >= b; });
}
}  // namespace

PINNACE_OP(cum_max){
    .name = "cum_max",
    .inputs = {{"x", kNumbers}},
    .attrs = {int_attr("axis", 0)},
    .min_outputs = 1,
    .max_outputs = 2,
    .types = cum_extreme_types,
    .reference = cum_max_reference,
};
}  // namespace pinnace
