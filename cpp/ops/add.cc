// add: z = a + b, broadcast as numpy does.
//   a, b  [...]  numbers, the same type; or quantised i8 | u8
//   z     the broadcast shape; quantised: declared scale and zero point
// Integers wrap. Floats are added in double and rounded once. Quantised: float32(a) + float32(b), quantised.
// Source: ONNX Add, opset 14.
#include "ops/element.h"

namespace pinnace {
namespace {
Status add_reference(const NodeView&, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView a = in[0], b = in[1], z = out[0];
  if (z.type->quantized()) {
    StridedLoop loop(z.type->shape);
    loop.add_broadcast(a.type->shape);
    loop.add_broadcast(b.type->shape);
    loop.run([&](int64_t i, const int64_t* at) {
      const float sum = dequantize(load_int(a, at[0]), scale_zero(*a.type)) +
                        dequantize(load_int(b, at[1]), scale_zero(*b.type));
      store_int(z, i, quantize(sum, scale_zero(*z.type), int_range(z.dtype())));
    });
    return {};
  }
  return visit(z.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_broadcast<T, T>(a, b, z, [](auto x, auto y) {
      if constexpr (std::is_integral_v<T>) {  // unsigned arithmetic wraps where signed would be undefined
        return static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
      } else {
        return x + y;
      }
    });
    return Status();
  });
}
}  // namespace

constinit const OpDef add_op{
    .name = "add",
    .inputs = {{"a", kNumbers, 'T'}, {"b", kNumbers, 'T'}},
    .type = binary_type,
    .reference = add_reference,
    .in_place = 0b11,
};
}  // namespace pinnace
