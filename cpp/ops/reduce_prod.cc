// reduce_prod: y = product of x over some axes.
//   x     [...]  numbers, quantised i8 | u8
//   axes  [n]  i32 | i64, optional
//   y     as x, the axes of size 1 or gone
// Integers wrap. An empty row gives 1.
// Attributes, axes and arithmetic: ops/reduce.h. A NaN in a row gives NaN, and so does inf times 0. Source: ONNX
// ReduceProd, opset 18.
#include "ops/reduce.h"

namespace pinnace {
namespace {
Status reduce_prod_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return reduce(node, in, out, [](const auto& row) {
    using A = std::remove_cvref_t<decltype(row.lowest)>;
    A product = 1;
    for (const A v : row.values) product = wrapping_mul(product, v);
    return product;
  });
}
}  // namespace

PINNACE_OP(reduce_prod){
    .name = "reduce_prod",
    .inputs = kReduceInputs<kNumbers>,
    .attrs = kReduceAttrs,
    .type = reduce_type,
    .reference = reduce_prod_reference,
    .traits = Trait::kReduction,
};
}  // namespace pinnace
