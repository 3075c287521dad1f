// reduce_min: y = the smallest x over some axes.
//   x     [...]  any type, quantised i8 | u8
//   axes  [n]  i32 | i64, optional
//   y     as x, the axes of size 1 or gone
// NaN wins. An empty row gives inf, or the largest number of an integer type, or true. Bool: true if all are.
// Attributes, axes and arithmetic: ops/reduce.h. Source: ONNX ReduceMin, opset 20.
#include "ops/reduce.h"

namespace pinnace {
namespace {
Status reduce_min_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return reduce(node, in, out, [](const auto& row) {
    auto best = row.highest;
    for (const auto v : row.values) best = best != best || v >= best ? best : v;
    return best;
  });
}
}  // namespace

PINNACE_OP(reduce_min){
    .name = "reduce_min",
    .inputs = kReduceInputs<kAny>,
    .attrs = kReduceAttrs,
    .type = reduce_type,
    .reference = reduce_min_reference,
    .traits = Trait::kCompares | Trait::kReduction,
};
}  // namespace pinnace
