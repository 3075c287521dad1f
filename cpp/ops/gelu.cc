// gelu: y = x / 2 * (1 + erf(x / sqrt(2))), or its approximation with tanh.
//   x            [...]  floats, or quantised i8 | u8
//   approximate  string, default "none"; "tanh": y = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
//   y            as x; quantised: declared scale and zero point
// NaN stays NaN; -inf gives NaN, as the formula does. erfc(-x / sqrt(2)) stands for 1 + erf, so that small results keep
// their digits. Computed in double, rounded once. Quantised: by table, see quantized_map.h. Source: ONNX Gelu,
// opset 20.
#include "ops/unary.h"

namespace pinnace {
namespace {
Result<TensorType> gelu_type(const NodeView& node) {
  const std::string_view kind = node.attr_string("approximate");
  if (kind != "none" && kind != "tanh") return node.error("approximate is '", kind, "', must be 'none' or 'tanh'");
  return real_function_type(node);
}

Status gelu_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const bool tanh = node.attr_string("approximate") == "tanh";
  return (tanh ? unary_reference<UnaryKind::kGeluTanh> : unary_reference<UnaryKind::kGelu>)(node, in, out);
}
}  // namespace

PINNACE_OP(gelu){
    .name = "gelu",
    .inputs = {{"x", kReals}},
    .attrs = {string_attr("approximate", "none")},
    .type = gelu_type,
    .reference = gelu_reference,
    .in_place = 1,
    .traits = Trait::kElementwise | Trait::kFoldsQuantization,
    .unary = UnaryKind::kGelu,
};
}  // namespace pinnace
