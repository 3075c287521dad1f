// reduce_sum_square: y = sum of x * x over some axes.
//   x     [...]  numbers, quantised i8 | u8
//   axes  [n]  i32 | i64, optional
//   y     as x, the axes of size 1 or gone
// Integers wrap. An empty row gives 0.
// Attributes, axes and arithmetic: ops/reduce.h. A NaN in a row gives NaN. Source: ONNX ReduceSumSquare, opset 18.
#include "ops/reduce.h"

namespace pinnace {
namespace {
Status reduce_sum_square_reference(const NodeView& node, std::span<const TensorView> in,
                                   std::span<const TensorView> out) {
  return reduce(node, in, out, [](const auto& row) {
    using A = std::remove_cvref_t<decltype(row.lowest)>;
    A sum{};
    for (const A v : row.values) sum = wrapping_add(sum, wrapping_mul(v, v));
    return sum;
  });
}
}  // namespace

PINNACE_OP(reduce_sum_square){
    .name = "reduce_sum_square",
    .inputs = kReduceInputs<kNumbers>,
    .attrs = kReduceAttrs,
    .type = reduce_type,
    .reference = reduce_sum_square_reference,
    .traits = Trait::kReduction,
};
}  // namespace pinnace
