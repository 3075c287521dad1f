// mul: z = a * b, broadcast as numpy does.
//   a, b  [...]  numbers, the same type; or quantised i8 | u8
//   z     the broadcast shape; quantised: declared scale and zero point
// Integers wrap. Floats are multiplied in double and rounded once. Quantised: float32(a) * float32(b), quantised.
// NaN and infinities as IEEE 754 has them. Source: ONNX Mul, opset 14.
#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Status mul_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  if (out[0].type->quantized()) {
    map_quantized(node.threads(), in[0], in[1], out[0], [](float a, float b) { return a * b; });
    return {};
  }
  return visit(out[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_broadcast<T, T>(node.threads(), in[0], in[1], out[0], [](auto a, auto b) {
      if constexpr (std::is_integral_v<T>) {
        return wrap<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      } else {
        return a * b;
      }
    });
    return Status();
  });
}
}  // namespace

PINNACE_OP(mul){
    .name = "mul",
    .inputs = {{"a", kNumbers, 'T'}, {"b", kNumbers, 'T'}},
    .type = binary_type,
    .reference = mul_reference,
    .in_place = 0b11,
    .traits = Trait::kElementwise | Trait::kFoldsQuantization,
};
}  // namespace pinnace
