// add: z = activation(a + b), broadcast as numpy does.
//   a, b  [...]  numbers, the same type; or quantised i8 | u8
//   activation, activation_params: see activation.h; floats any, quantised relu and clip
//   z     the broadcast shape; quantised: declared scale and zero point
// Integers wrap. Floats: sum and activation in double, rounded once. Quantised: float32(a) + float32(b), quantised,
// then clamped to activation_range. NaN and infinities as IEEE 754 has them. Source: ONNX Add, opset 14; the activation
// is an addition.
#include <algorithm>

#include "ops/activation.h"

namespace pinnace {
namespace {
Result<TensorType> add_type(const NodeView& node) {
  PINNACE_ASSIGN(TensorType z, binary_type(node));
  PINNACE_TRY(check_activation(node, z));
  return z;
}

Status add_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView a = in[0], b = in[1], z = out[0];
  PINNACE_ASSIGN(const Activation activation, parse_activation(node));
  if (z.type->quantized()) {
    StridedLoop loop(z.type->shape);
    loop.add_broadcast(a.type->shape);
    loop.add_broadcast(b.type->shape);
    const IntRange range = activation_range(activation, *z.type);
    const auto run = [&](int64_t i, const int64_t* at) {
      const float sum =
          dequantize(load_int(a, at[0]), scale_zero(*a.type)) + dequantize(load_int(b, at[1]), scale_zero(*b.type));
      const int32_t q = quantize(sum, scale_zero(*z.type), int_range(z.dtype()));
      store_int(z, i, std::min(std::max(q, range.min), range.max));
    };
    node.threads().ranges(
        loop.size(), kMapNanoseconds, [&](int64_t first, int64_t last) { loop.run(first, last, run); }, kMapGrain);
    return {};
  }
  return visit(z.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_broadcast<T, T>(node.threads(), a, b, z, [&activation](auto x, auto y) {
      if constexpr (std::is_integral_v<T>) {  // unsigned arithmetic wraps where signed would be undefined
        return static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
      } else {
        return activation(x + y);
      }
    });
    return Status();
  });
}
}  // namespace

PINNACE_OP(add){
    .name = "add",
    .inputs = {{"a", kNumbers, 'T'}, {"b", kNumbers, 'T'}},
    .attrs = {kActivationAttr, kActivationParamsAttr},
    .type = add_type,
    .reference = add_reference,
    .in_place = 0b11,
    .traits = Trait::kElementwise | Trait::kFoldsQuantization,
};
}  // namespace pinnace
