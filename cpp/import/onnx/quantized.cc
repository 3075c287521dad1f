// QLinear operators as dequantise, operate, quantise. The pass fold_quantization makes operators on quantised types of
// them, as of any model that is written that way.
#include "import/onnx/quantized.h"

#include <algorithm>

namespace pinnace::onnx {

Result<ValueId> dequantize(SourceNode& node, ValueId q, ValueId scale, ValueId zero, int64_t axis) {
  PINNACE_ASSIGN(scale, node.as_scalar(scale));
  if (zero != kNoValue) {
    PINNACE_ASSIGN(zero, node.as_scalar(zero));
  }
  Attrs attrs;
  if (node.type(scale).rank() == 1) attrs.emplace_back("axis", axis);
  return node.emit("dequantize_linear", {q, scale, zero}, std::move(attrs));
}

Status quantize(SourceNode& node, ValueId y, ValueId scale, ValueId zero) {
  PINNACE_ASSIGN(scale, node.as_scalar(scale));
  if (zero != kNoValue) {
    PINNACE_ASSIGN(zero, node.as_scalar(zero));
  }
  return node.finish("quantize_linear", {y, scale, zero});
}

/// quantize_linear, dequantize_linear. A scale with one element is for the whole tensor, whatever its rank; where the
/// axis itself has one element, both readings are the same and nothing is changed.
Status map_quantize_dequantize(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(2));
  std::vector<ValueId> inputs = node.inputs();
  PINNACE_ASSIGN(const int64_t block, node.int_attr("block_size", 0));
  PINNACE_ASSIGN(const int64_t axis, node.int_attr("axis", 1));
  const TensorType& x = node.in_type(0);
  const int64_t at = axis < 0 ? axis + x.rank() : axis;
  const bool same = at >= 0 && at < x.rank() && x.shape[static_cast<size_t>(at)] == Dim(1);
  for (size_t i = 1; i < inputs.size() && block == 0 && !same; ++i) {
    if (inputs[i] == kNoValue) continue;
    PINNACE_ASSIGN(inputs[i], node.as_scalar(inputs[i]));
  }
  return map_as(node, snake_case(node.proto().op_type()), std::move(inputs));
}

/// Inputs: x, its scale and zero point, w and its, y's, bias. The bias is i32 in units of x's scale times w's.
Status map_q_linear_conv(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(8));
  PINNACE_ASSIGN(const ValueId x, dequantize(node, node.in(0), node.in(1), node.in(2), 1));
  PINNACE_ASSIGN(const ValueId w, dequantize(node, node.in(3), node.in(4), node.in(5), 0));
  std::vector<ValueId> inputs = {x, w};
  if (node.has(8)) {
    PINNACE_ASSIGN(const ValueId scale, node.emit("mul", {node.in(1), node.in(4)}));
    PINNACE_ASSIGN(const ValueId bias, dequantize(node, node.in(8), scale, kNoValue, 0));
    inputs.push_back(bias);
  }
  PINNACE_ASSIGN(const OpDef* conv, node.find("conv"));
  PINNACE_ASSIGN(Attrs attrs, convert_attributes(node, *conv));
  PINNACE_ASSIGN(const ValueId y, node.emit("conv", std::move(inputs), std::move(attrs)));
  return quantize(node, y, node.in(6), node.in(7));
}

/// Inputs: a, its scale and zero point, b and its, y's. Scales are one, one per row of a, or one per column of b.
Status map_q_linear_mat_mul(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(8));
  const int64_t rank_a = node.in_type(0).rank(), rank_b = node.in_type(3).rank();
  for (int i : {1, 4, 6}) {
    if (node.in_type(i).rank() > 1) return refuse("scales must have at most one dimension", to_string(node.in_type(i)));
  }
  PINNACE_ASSIGN(const ValueId a,
                 dequantize(node, node.in(0), node.in(1), node.in(2), std::max<int64_t>(rank_a - 2, 0)));
  PINNACE_ASSIGN(const ValueId b,
                 dequantize(node, node.in(3), node.in(4), node.in(5), std::max<int64_t>(rank_b - 1, 0)));
  PINNACE_ASSIGN(const ValueId y, node.emit("mat_mul", {a, b}));
  PINNACE_ASSIGN(const ValueId scale, node.as_scalar(node.in(6)));
  PINNACE_ASSIGN(const ValueId zero, node.as_scalar(node.in(7)));
  Attrs attrs;
  if (node.type(scale).rank() == 1) attrs.emplace_back("axis", std::max<int64_t>(node.type(y).rank() - 2, 0));
  return node.finish("quantize_linear", {y, scale, zero}, std::move(attrs));
}

}  // namespace pinnace::onnx
