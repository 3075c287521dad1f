// Inference into nested graphs.
#include "ops/bodies.h"

namespace pinnace {
namespace {
// Contents that shapes can depend on: integer vectors and scalars. Others would only make inference compute the body
// ahead.
bool shapes_depend_on(const TensorType& type) {
  return (kIndices >> static_cast<int>(type.dtype) & 1) && type.rank() <= 1 && type.concrete() &&
         type.elements() <= kKnownElements;
}
}  // namespace

Result<Inference> infer_body(const NodeView& node, std::string_view what, const Graph& body,
                             std::span<const TensorType> inputs, std::span<const void* const> data) {
  if (inputs.size() != body.inputs.size()) {
    return node.error(what, " takes ", body.inputs.size(), " inputs, is given ", inputs.size());
  }
  std::vector<ConstantPtr> contents(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& declared = body.value(body.inputs[i]).type;
    if (declared.dtype != inputs[i].dtype) {
      return node.error("input ", i, " of ", what, " is ", to_string(declared), ", is given ", to_string(inputs[i]));
    }
    if (data[i] && shapes_depend_on(inputs[i])) {
      contents[i] = std::make_shared<const Constant>(nullptr, data[i], static_cast<size_t>(inputs[i].bytes()));
    }
  }
  static const OpTable built_in;
  return infer(body, inputs, contents, node.ops() ? *node.ops() : built_in);
}

Result<TensorType> either_type(const NodeView& node, std::string_view what, const TensorType& a, const TensorType& b) {
  const bool same_parameters = a.quantized() == b.quantized() && (!a.quantized() || *a.quantization == *b.quantization);
  if (a.dtype != b.dtype || a.rank() != b.rank() || !same_parameters) {
    return node.error(what, " is ", to_string(a), " one way and ", to_string(b), " the other");
  }
  TensorType type = a;
  for (size_t d = 0; d < type.shape.size(); ++d) {
    const Dim x = a.shape[d], y = b.shape[d];
    if (x == y) continue;
    const int64_t most_x = x.known() ? x.size : x.max, most_y = y.known() ? y.size : y.max;
    type.shape[d] = most_x >= 0 && most_y >= 0 ? Dim::unknown(std::max(most_x, most_y)) : Dim();
  }
  return type;
}

}  // namespace pinnace
