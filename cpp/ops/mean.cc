// mean: y = the mean of all inputs, element by element, broadcast as numpy does.
//   x...  one or more [...]  floats, the same type
//   y     the broadcast shape
// Summed in double from the first input to the last, rounded once. NaN and infinities as IEEE 754 has them. Source:
// ONNX Mean, opset 13.
#include "ops/element.h"

namespace pinnace {
namespace {
Status mean_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const auto count = static_cast<double>(in.size());
  return visit_float(out[0].dtype(), [&](auto zero) {
    fold_broadcast<decltype(zero)>(
        node.threads(), in, out[0], [](double a, double b) { return a + b; }, [count](double v) { return v / count; });
    return Status();
  });
}
}  // namespace

PINNACE_OP(mean){
    .name = "mean",
    .inputs = {{"x", kFloats, 'T', Arity::kVariadic}},
    .type = variadic_type,
    .reference = mean_reference,
    .in_place = 0b11,
    .traits = Trait::kElementwise | Trait::kKeepsOnlyInput,
};
}  // namespace pinnace
