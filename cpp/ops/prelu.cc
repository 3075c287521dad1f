// prelu: y = x where x >= 0, else slope * x.
//   x      [...]  numbers, or quantised i8 | u8
//   slope  broadcast to the shape of x; element type of x; quantised where x is
//   y      as x; quantised: declared scale and zero point
// NaN stays NaN and -0 times a positive slope -0. Integers wrap. Quantised: float32(x) * float32(slope), quantised.
// Source: ONNX PRelu, opset 16.
#include "ops/quantized_map.h"

namespace pinnace {
namespace {
Result<TensorType> prelu_type(const NodeView& node) {
  PINNACE_ASSIGN(TensorType type, binary_type(node));
  const Shape& x = node.input(0).shape;
  bool grows = type.shape.size() != x.size();
  for (size_t d = 0; !grows && d < x.size(); ++d) {
    grows = x[d].known() && type.shape[d].known() && x[d] != type.shape[d];
  }
  if (grows) return node.error("slope ", node.input(1), " does not broadcast to x ", node.input(0));
  type.shape = x;
  return type;
}

Status prelu_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  if (out[0].type->quantized()) {
    map_quantized(node.threads(), in[0], in[1], out[0], [](float x, float slope) { return x >= 0 ? x : slope * x; });
    return {};
  }
  return visit(out[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_broadcast<T, T>(node.threads(), in[0], in[1], out[0], [](auto x, auto slope) -> decltype(x) {
      if constexpr (std::is_integral_v<T>) {
        return x >= decltype(x){} ? x : wrap<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(slope));
      } else {
        return x >= 0 ? x : slope * x;
      }
    });
    return Status();
  });
}
}  // namespace

PINNACE_OP(prelu){
    .name = "prelu",
    .inputs = {{"x", kNumbers, 'T'}, {"slope", kNumbers, 'T'}},
    .type = prelu_type,
    .reference = prelu_reference,
    .in_place = 1,
    .traits = Trait::kElementwise,
};
}  // namespace pinnace
