// reduce_l1: y = sum of |x| over some axes.
//   x     [...]  numbers, quantised i8 | u8
//   axes  [n]  i32 | i64, optional
//   y     as x, the axes of size 1 or gone
// Integers wrap. An empty row gives 0.
// Attributes, axes and arithmetic: ops/reduce.h. A NaN in a row gives NaN. Source: ONNX ReduceL1, opset 18.
#include "ops/reduce.h"

namespace pinnace {
namespace {
Status reduce_l1_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return reduce(node, in, out, [](const auto& row) {
    using A = std::remove_cvref_t<decltype(row.lowest)>;
    A sum{};
    for (const A v : row.values) {
      A size = v;
      if constexpr (!std::is_same_v<A, uint64_t>) size = v < 0 ? wrapping_mul<A>(v, -1) : v == 0 ? A{} : v;
      sum = wrapping_add(sum, size);
    }
    return sum;
  });
}
}  // namespace

PINNACE_OP(reduce_l1){
    .name = "reduce_l1",
    .inputs = kReduceInputs<kNumbers>,
    .attrs = kReduceAttrs,
    .type = reduce_type,
    .reference = reduce_l1_reference,
    .traits = Trait::kReduction,
};
}  // namespace pinnace
