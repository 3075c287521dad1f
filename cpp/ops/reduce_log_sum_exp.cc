// reduce_log_sum_exp: y = log(sum of exp(x)), as m + log(sum of exp(x - m)) with m = max(x) over some axes.
//   x     [...]  numbers, quantised i8 | u8
//   axes  [n]  i32 | i64, optional
//   y     as x, the axes of size 1 or gone
// It overflows only where the result does: inf gives inf, NaN gives NaN, a row of -inf or an
// empty one -inf. Integers cut the fraction off.
// Attributes, axes and arithmetic: ops/reduce.h. Source: ONNX ReduceLogSumExp, opset 18.
#include "ops/reduce.h"

namespace pinnace {
namespace {
Status reduce_log_sum_exp_reference(const NodeView& node, std::span<const TensorView> in,
                                    std::span<const TensorView> out) {
  return reduce(node, in, out, [](const auto& row) {
    using A = std::remove_cvref_t<decltype(row.lowest)>;
    double max = -std::numeric_limits<double>::infinity();
    for (const A v : row.values) max = std::isnan(max) || static_cast<double>(v) <= max ? max : static_cast<double>(v);
    if (!std::isfinite(max)) return from_real<A>(max);
    double sum = 0;
    for (const A v : row.values) sum += std::exp(static_cast<double>(v) - max);
    return from_real<A>(max + std::log(sum));
  });
}
}  // namespace

PINNACE_OP(reduce_log_sum_exp){
    .name = "reduce_log_sum_exp",
    .inputs = kReduceInputs<kNumbers>,
    .attrs = kReduceAttrs,
    .type = reduce_type,
    .reference = reduce_log_sum_exp_reference,
    .traits = Trait::kReduction,
};
}  // namespace pinnace
