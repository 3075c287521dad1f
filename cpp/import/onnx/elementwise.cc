// Elementwise operators and reductions whose older forms differ: cast, clip, dropout, softmax, swish, reductions.
#include "base/dtype_code.h"
#include "import/onnx/mapping.h"

namespace pinnace::onnx {

Status map_identity(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(1));
  return node.set_output(0, node.in(0));
}

Status map_cast(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(1));
  PINNACE_ASSIGN(const int64_t to, node.int_attr("to", 0));
  if (to == 0) return refuse("attribute 'to' is required");
  return map_generic(node);
}

/// Cast to the element type of the second input, whose contents do not matter.
Status map_cast_like(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(2));
  return map_as(node, "cast", {node.in(0)}, {{"to", std::string(dtype_code(node.in_type(1).dtype))}});
}

/// Before opset 11 the bounds are attributes.
Status map_clip(SourceNode& node) {
  if (node.opset() >= 11) return map_generic(node);
  PINNACE_TRY(node.need_inputs(1));
  std::vector<ValueId> inputs = {node.in(0), kNoValue, kNoValue};
  for (int i = 0; i < 2; ++i) {
    const char* name = i ? "max" : "min";
    if (!node.attr(name)) continue;
    PINNACE_ASSIGN(const double bound, node.float_attr(name, 0));
    PINNACE_ASSIGN(inputs[static_cast<size_t>(i) + 1], node.constant_scalar(node.in_type(0).dtype, bound));
  }
  return node.finish("clip", std::move(inputs));
}

/// Dropout is identity unless it trains; its mask is then all true (1 before opset 10).
Status map_dropout(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(1));
  if (node.has(2)) {
    const ConstantPtr& training = node.scope().builder.data(node.in(2));
    if (!training || node.in_type(2).elements() != 1) return refuse("training_mode must be known");
    if (training->data()[0] != std::byte{0}) return refuse("training_mode must be false", "true");
  }
  PINNACE_ASSIGN(const int64_t is_test, node.int_attr("is_test", 0));
  if (node.opset() < 7 && !is_test) return refuse("is_test must be 1", "0");
  if (node.wants(1)) {
    const DType dtype = node.opset() >= 10 ? DType::kBool : node.in_type(0).dtype;
    PINNACE_ASSIGN(const ValueId one, node.constant_scalar(dtype, 1));
    PINNACE_ASSIGN(const ValueId shape, node.emit("shape", {node.in(0)}));
    PINNACE_ASSIGN(const ValueId mask, node.emit("expand", {one, shape}));
    PINNACE_TRY(node.set_output(1, mask));
  }
  return node.set_output(0, node.in(0));
}

/// softmax, log_softmax, hardmax. Before opset 13 all dimensions from `axis` on count as one, and `axis` is 1 by
/// default.
Status map_softmax(SourceNode& node) {
  if (node.opset() >= 13) return map_generic(node);
  PINNACE_TRY(node.need_inputs(1));
  const ValueId x = node.in(0);
  const Shape shape = node.type(x).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  PINNACE_ASSIGN(int64_t axis, node.int_attr("axis", 1));
  if (axis < -rank || axis > rank) return refuse(str_cat("axis must be within rank ", rank), str_cat(axis));
  if (axis < 0) axis += rank;
  const std::string op = snake_case(node.proto().op_type());
  bool one_wide = axis < rank;  // what follows the axis adds no elements
  for (int64_t i = axis + 1; i < rank; ++i) one_wide &= shape[static_cast<size_t>(i)] == Dim(1);
  if (one_wide) return node.finish(op, {x}, {{"axis", axis}});
  PINNACE_ASSIGN(const ValueId flat, node.emit("flatten", {x}, {{"axis", axis}}));
  PINNACE_ASSIGN(const ValueId y, node.emit(op, {flat}, {{"axis", int64_t{1}}}));
  PINNACE_ASSIGN(const ValueId sizes, node.emit("shape", {x}));
  return node.finish("reshape", {y, sizes}, {{"allowzero", int64_t{1}}});
}

/// x * sigmoid(alpha * x), which is silu where alpha is 1: the operator and the inputs of the node that makes it.
static Result<std::pair<std::string, std::vector<ValueId>>> swish(SourceNode& node, ValueId x) {
  PINNACE_ASSIGN(const double alpha, node.float_attr("alpha", 1));
  if (alpha == 1) return std::pair<std::string, std::vector<ValueId>>("silu", {x});
  PINNACE_ASSIGN(const ValueId factor, node.constant_scalar(node.type(x).dtype, alpha));
  PINNACE_ASSIGN(const ValueId scaled, node.emit("mul", {x, factor}));
  PINNACE_ASSIGN(const ValueId gate, node.emit("sigmoid", {scaled}));
  return std::pair<std::string, std::vector<ValueId>>("mul", {x, gate});
}

Status map_swish(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(1));
  PINNACE_ASSIGN(auto form, swish(node, node.in(0)));
  return node.finish(form.first, std::move(form.second));
}

/// swish(a) * b; a product of fast operators needs no operator of its own.
Status map_swiglu(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(2));
  const TensorType &a = node.in_type(0), &b = node.in_type(1);
  bool same = a.rank() == b.rank();
  for (size_t d = 0; same && d < a.shape.size(); ++d) {
    same = !a.shape[d].known() || !b.shape[d].known() || a.shape[d].size == b.shape[d].size;
  }
  if (!same) return refuse("both inputs must have one shape", str_cat(to_string(a), " and ", to_string(b)));
  PINNACE_ASSIGN(auto form, swish(node, node.in(0)));
  PINNACE_ASSIGN(const ValueId gate, node.emit(form.first, std::move(form.second)));
  return node.finish("mul", {gate, node.in(1)});
}

/// Before opset 18 (sums: 13) the axes are an attribute.
Status map_reduce(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(1));
  const std::string op = snake_case(node.proto().op_type());
  if (!node.attr("axes")) return map_as(node, op, node.inputs());
  PINNACE_ASSIGN(const std::vector<int64_t> axes, node.ints_attr("axes"));
  PINNACE_ASSIGN(const ValueId input, node.constant_ints(axes));
  return map_as(node, op, {node.in(0), input}, {}, {"axes"});
}

Status map_random(SourceNode& node) {
  return refuse("random numbers differ from run to run and cannot be verified", node.proto().op_type());
}
Status map_absent(SourceNode& node) {
  return refuse("text and image files are outside the scope", node.proto().op_type());
}

}  // namespace pinnace::onnx
