// relu: y = max(x, 0).
//   x  [...]  floats, signed integers, quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN; -0 becomes 0. Quantised: dequantise, max, quantise. Source: ONNX Relu, opset 14.
#include "ops/unary.h"

namespace pinnace {
namespace {
Status relu_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  if (x.type->quantized()) {
    const auto run = [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const float real = dequantize(load_int(x, i), scale_zero(*x.type));
        store_int(y, i, quantize(real > 0 ? real : 0.0f, scale_zero(*y.type), int_range(y.dtype())));
      }
    };
    node.threads().ranges(y.elements(), kMapNanoseconds, run, kMapGrain);
    return {};
  }
  return visit(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto run = [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const T v = x.data<T>()[i];
        y.data<T>()[i] = v < zero || v == zero ? T{} : v;
      }
    };
    node.threads().ranges(y.elements(), kMapNanoseconds, run, kMapGrain);
    return Status();
  });
}
}  // namespace

PINNACE_OP(relu){
    .name = "relu",
    .inputs = {{"x", kNumbers}},
    .type = same_type,
    .reference = relu_reference,
    .in_place = 1,
    .traits = Trait::kElementwise | Trait::kFoldsQuantization,
    .unary = UnaryKind::kRelu,
};
}  // namespace pinnace
