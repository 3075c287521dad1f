// is_inf: y = true where x is infinite.
//   x                [...]  floats
//   detect_negative  int, default 1: 0 leaves -inf out
//   detect_positive  int, default 1: 0 leaves inf out
//   y                [...]  bool
// NaN gives false. Source: ONNX IsInf, opset 20.
#include <limits>

#include "ops/element.h"

namespace pinnace {
namespace {
Result<TensorType> is_inf_type(const NodeView& node) {
  return TensorType{DType::kBool, node.input(0).shape, nullptr};
}

Status is_inf_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const bool negative = node.attr_int("detect_negative"), positive = node.attr_int("detect_positive");
  return visit_float(in[0].dtype(), [&](auto zero) {
    map_elements<decltype(zero), bool>(node.threads(), in[0], out[0], [=](double v) {
      constexpr double kInf = std::numeric_limits<double>::infinity();
      return (positive && v == kInf) || (negative && v == -kInf);
    });
    return Status();
  });
}
}  // namespace

PINNACE_OP(is_inf){
    .name = "is_inf",
    .inputs = {{"x", kFloats}},
    .attrs = {int_attr("detect_negative", 1), int_attr("detect_positive", 1)},
    .type = is_inf_type,
    .reference = is_inf_reference,
    .traits = Trait::kElementwise,
};
}  // namespace pinnace
