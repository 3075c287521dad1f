// cum_prod: running products along an axis: y[k] = x[0] * ... * x[k].
//   x          [...]  numbers
//   axis       [] or [1]  i32 | i64
//   exclusive  int, default 0; 1: y[k] leaves out x[k], so that the first one is 1
//   reverse    int, default 0; 1: from the end
//   y          as x
// Floats are multiplied in double and each product is rounded once; integers wrap. From a NaN on all products are NaN.
// Source: ONNX CumProd, opset 26.
#include "ops/cum_fold.h"

namespace pinnace {
namespace {
Status cum_prod_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return cum_fold(node, in, out, 1, [](auto before, auto element) { return before * element; });
}
}  // namespace

PINNACE_OP(cum_prod){
    .name = "cum_prod",
    .inputs = {{"x", kNumbers}, {"axis", kIndices}},
    .attrs = {int_attr("exclusive", 0), int_attr("reverse", 0)},
    .type = cum_fold_type,
    .reference = cum_prod_reference,
    .in_place = 1,
};
}  // namespace pinnace
