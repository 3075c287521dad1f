// reduce_mean: y = sum of x / count over some axes.
//   x     [...]  numbers, quantised i8 | u8
//   axes  [n]  i32 | i64, optional
//   y     as x, the axes of size 1 or gone
// Integers cut the fraction off. An empty row gives NaN, 0 for integers.
// Attributes, axes and arithmetic: ops/reduce.h. Source: ONNX ReduceMean, opset 18.
#include "ops/reduce.h"

namespace pinnace {
namespace {
Status reduce_mean_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return reduce(node, in, out, [](const auto& row) {
    using A = std::remove_cvref_t<decltype(row.lowest)>;
    double sum = 0;
    for (const A v : row.values) sum += static_cast<double>(v);
    return from_real<A>(sum / static_cast<double>(row.values.size()));
  });
}
}  // namespace

PINNACE_OP(reduce_mean){
    .name = "reduce_mean",
    .inputs = kReduceInputs<kNumbers>,
    .attrs = kReduceAttrs,
    .type = reduce_type,
    .reference = reduce_mean_reference,
    .traits = Trait::kReduction | Trait::kFoldsQuantization,
};
}  // namespace pinnace
