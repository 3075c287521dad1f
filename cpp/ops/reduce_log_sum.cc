// reduce_log_sum: y = log(sum of x) over some axes.
//   x     [...]  numbers, quantised i8 | u8
//   axes  [n]  i32 | i64, optional
//   y     as x, the axes of size 1 or gone
// A sum of 0 gives -inf, a negative one NaN; integers cut the fraction off. An empty row gives -inf.
// Attributes, axes and arithmetic: ops/reduce.h. Source: ONNX ReduceLogSum, opset 18.
#include "ops/reduce.h"

namespace pinnace {
namespace {
Status reduce_log_sum_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return reduce(node, in, out, [](const auto& row) {
    using A = std::remove_cvref_t<decltype(row.lowest)>;
    double sum = 0;
    for (const A v : row.values) sum += static_cast<double>(v);
    return from_real<A>(std::log(sum));
  });
}
}  // namespace

PINNACE_OP(reduce_log_sum){
    .name = "reduce_log_sum",
    .inputs = kReduceInputs<kNumbers>,
    .attrs = kReduceAttrs,
    .type = reduce_type,
    .reference = reduce_log_sum_reference,
    .traits = Trait::kReduction,
};
}  // namespace pinnace
