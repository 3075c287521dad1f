// reduce_l2: y = sqrt(sum of x * x) over some axes.
//   x     [...]  numbers, quantised i8 | u8
//   axes  [n]  i32 | i64, optional
//   y     as x, the axes of size 1 or gone
// Integers cut the fraction off. An empty row gives 0.
// Attributes, axes and arithmetic: ops/reduce.h. A NaN in a row gives NaN. Source: ONNX ReduceL2, opset 18.
#include "ops/reduce.h"

namespace pinnace {
namespace {
Status reduce_l2_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return reduce(node, in, out, [](const auto& row) {
    using A = std::remove_cvref_t<decltype(row.lowest)>;
    double sum = 0;
    for (const A v : row.values) sum += static_cast<double>(v) * static_cast<double>(v);
    return from_real<A>(std::sqrt(sum));
  });
}
}  // namespace

PINNACE_OP(reduce_l2){
    .name = "reduce_l2",
    .inputs = kReduceInputs<kNumbers>,
    .attrs = kReduceAttrs,
    .type = reduce_type,
    .reference = reduce_l2_reference,
    .traits = Trait::kReduction,
};
}  // namespace pinnace
