// is_nan: y = true where x is not a number.
//   x  [...]  floats
//   y  [...]  bool
// Source: ONNX IsNaN, opset 20.
#include "ops/element.h"

namespace pinnace {
namespace {
Result<TensorType> is_nan_type(const NodeView& node) {
  return TensorType{DType::kBool, node.input(0).shape, nullptr};
}

Status is_nan_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return visit_float(in[0].dtype(), [&](auto zero) {
    map_elements<decltype(zero), bool>(node.threads(), in[0], out[0], [](double v) { return v != v; });
    return Status();
  });
}
}  // namespace

PINNACE_OP(is_nan){
    .name = "is_nan",
    .inputs = {{"x", kFloats}},
    .type = is_nan_type,
    .reference = is_nan_reference,
    .traits = Trait::kElementwise,
};
}  // namespace pinnace
