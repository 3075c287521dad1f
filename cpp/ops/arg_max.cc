// arg_max: index of the largest element along one axis.
//   x                  [...]  numbers; quantised: stored integers are compared
//   axis               int, default 0
//   keepdims           int, default 1: the axis stays, with size 1
//   select_last_index  int, default 0: of equal elements the first; 1: the last
//   y                  i64
// NaN counts as largest. An axis without elements is an error unless y is empty. Source: ONNX ArgMax, opset 13.
#include "ops/arg_reduce.h"

namespace pinnace {
namespace {
Status arg_max_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return arg_reduce(node, in[0], out[0], true);
}
}  // namespace

PINNACE_OP(arg_max){
    .name = "arg_max",
    .inputs = {{"x", kNumbers}},
    .attrs = kArgReduceAttrs,
    .type = arg_reduce_type,
    .reference = arg_max_reference,
    .traits = Trait::kCompares,
};
}  // namespace pinnace
