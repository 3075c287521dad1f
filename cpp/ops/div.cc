// div: z = a / b, broadcast as numpy does.
//   a, b  [...]  numbers, the same type; or quantised i8 | u8
//   z     the broadcast shape; quantised: declared scale and zero point
// Integers: truncates toward zero; a divisor of 0 is an error; the smallest value / -1 wraps to itself. Floats: IEEE,
// in double, rounded once. Quantised: float32(a) / float32(b), quantised; 0 / 0 gives the zero point. NaN and
// infinities as IEEE 754 has them, x / 0 among them. Source: ONNX Div, opset 14.
#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status div_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView a = in[0], b = in[1], z = out[0];
  if (z.type->quantized()) {
    map_quantized(node.threads(), a, b, z, [](float x, float y) { return x / y; });
    return {};
  }
  return visit(z.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) PINNACE_TRY(refuse_zero_divisor<T>(node, b, z));
    map_broadcast<T, T>(node.threads(), a, b, z, [](auto x, auto y) {
      if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
        return y == -1 ? wrap<T>(0 - static_cast<uint64_t>(x)) : static_cast<T>(x / y);
      } else {
        return static_cast<Wide<T>>(x / y);
      }
    });
    return Status();
  });
}
}  // namespace

PINNACE_OP(div){
    .name = "div",
    .inputs = {{"a", kNumbers, 'T'}, {"b", kNumbers, 'T'}},
    .type = binary_type,
    .reference = div_reference,
    .in_place = 0b11,
    .traits = Trait::kElementwise,
};
}  // namespace pinnace
