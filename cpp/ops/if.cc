// if: runs one of two nested graphs.
//   cond      one element, bool
//   captured  ...  any types: what the branches read; both get all of them, in order
//   then_branch, else_branch graphs, required: inputs are exactly the captured values; outputs are the node's
//   outputs   as the taken branch's; both branches have the same number, element types and quantisation
// Sizes in which the branches differ are unknown until it runs; ranks may differ only where cond is known. Sizes that
// one branch refuses are an error only when it is taken. Source: ONNX If, opset 25, with captured values made explicit.
#include "ops/bodies.h"

namespace pinnace {
namespace {
Status if_types(const NodeView& node, std::span<TensorType> out) {
  const TensorType& cond = node.input(0);
  if (cond.concrete() && cond.elements() != 1) return node.error("cond is ", cond, ", must have one element");
  std::vector<TensorType> types;
  std::vector<const void*> data;
  for (int i = 1; i < node.input_count(); ++i) {
    types.push_back(node.input(i));
    data.push_back(node.input_data(i));
  }
  const void* known = node.input_data(0);
  bool first = true;
  Status failed;
  for (const std::string_view branch : {"then_branch", "else_branch"}) {
    const Graph& graph = node.attr_graph(branch);
    if (graph.outputs.size() != out.size())
      return node.error(branch, " has ", graph.outputs.size(), " outputs, the node ", out.size());
    if (known && (*static_cast<const uint8_t*>(known) != 0) != (branch == "then_branch")) continue;
    const Result<BodyOutputs> found = infer_body(node, branch, graph, types, data);
    if (!found.ok()) {
      // Sizes may fit the other branch alone, as where a model has a branch per sampling rate. That this one fits none
      // at all is an error now, that it is taken with these sizes is one when it runs.
      // Other codes than that of a broken rule say nothing of sizes.
      if (known || !failed.ok() || found.status().code() != Code::kInvalidArgument ||
          !infer_body(node, branch, graph).ok()) {
        return inside(node, failed.ok() ? found.status() : failed);
      }
      failed = found.status();
      continue;
    }
    for (size_t i = 0; i < out.size(); ++i) {
      const TensorType& type = found->types[i];
      if (first) {
        out[i] = type;
      } else {
        PINNACE_ASSIGN(out[i], either_type(node, str_cat("output ", i), out[i], type));
      }
    }
    first = false;
  }
  return {};
}
}  // namespace

PINNACE_OP(if){
    .name = "if",
    .inputs = {{"cond", kBool}, {"captured", kEvery, 0, Arity::kVariadic}},
    .attrs = {required_attr("else_branch", AttrKind::kGraph), required_attr("then_branch", AttrKind::kGraph)},
    .max_outputs = -1,
    .types = if_types,
    .traits = Trait::kControlFlow,
};
}  // namespace pinnace
