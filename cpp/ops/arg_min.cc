// arg_min: index of the smallest element along one axis.
//   x                  [...]  numbers; quantised: stored integers are compared
//   axis               int, default 0
//   keepdims           int, default 1: the axis stays, with size 1
//   select_last_index  int, default 0: of equal elements the first; 1: the last
//   y                  i64
// NaN counts as smallest. An axis without elements is an error unless y is empty. Source: ONNX ArgMin, opset 13.
#include "ops/arg_reduce.h"

namespace pinnace {
namespace {
Status arg_min_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return arg_reduce(node, in[0], out[0], false);
}
}  // namespace

PINNACE_OP(arg_min){
    .name = "arg_min",
    .inputs = {{"x", kNumbers}},
    .attrs = kArgReduceAttrs,
    .type = arg_reduce_type,
    .reference = arg_min_reference,
    .traits = Trait::kCompares,
};
}  // namespace pinnace
