// merge_reshapes: an operator with Trait::kReshapes (reshape, flatten, squeeze, unsqueeze) on the result of another
// becomes one reshape of the value before. No arithmetic changes. Conditions: the shape is known but for one dimension,
// or the second is a reshape whose shape input names every dimension (no 0 that copies one from its input); no squeeze
// of a dynamic size, which refuses all but 1; no quantisation along an axis, whose place reshape would not know.
#include <algorithm>

#include "passes/rewrite.h"

namespace pinnace {
namespace {

bool reshapes(const Rewrite& rewrite, const Node& node) {
  return rewrite.has(node, Trait::kReshapes) && node.outputs.size() == 1;
}

/// True for a squeeze of a dimension whose size is dynamic: it refuses other sizes than 1, which a reshape would not.
bool checks_sizes(const Rewrite& rewrite, const Node& node) {
  if (node.op != "squeeze") return false;
  const Shape& shape = rewrite.type(node.inputs[0]).shape;
  const auto axes = node.inputs.size() > 1 ? rewrite.numbers(node.inputs[1]) : std::nullopt;
  if (!axes) return !rewrite.type(node.inputs[0]).concrete();
  return std::any_of(axes->begin(), axes->end(), [&](double axis) {
    return !shape[static_cast<size_t>(axis < 0 ? axis + static_cast<double>(shape.size()) : axis)].known();
  });
}

/// The shape input of the merged node, or kNoValue.
Result<ValueId> target(Rewrite& rewrite, const Node& node) {
  const TensorType& y = rewrite.type(node.outputs[0]);
  if (node.op == "reshape") {
    const auto sizes = rewrite.numbers(node.inputs[1]);
    if (sizes && std::find(sizes->begin(), sizes->end(), 0.0) == sizes->end()) return node.inputs[1];
  }
  std::vector<double> sizes;
  int unknown = 0;
  for (const Dim& d : y.shape) {
    if (d.size == 0) return kNoValue;
    unknown += !d.known();
    sizes.push_back(d.known() ? static_cast<double>(d.size) : -1);
  }
  if (unknown > 1) return kNoValue;
  return rewrite.add_constant(rewrite.graph().value(node.outputs[0]).name + ".shape", DType::kI64,
                              {static_cast<int64_t>(sizes.size())}, sizes);
}

Result<int> run(Graph& graph, const PassContext& context) {
  Rewrite rewrite(graph, context);
  for (Node* node : rewrite.nodes()) {
    if (!rewrite.alive(node) || !reshapes(rewrite, *node)) continue;
    const ValueId between = node->inputs[0];
    Node* first = rewrite.producer(between);
    if (!first || !reshapes(rewrite, *first) || checks_sizes(rewrite, *first) || checks_sizes(rewrite, *node)) continue;
    const auto& quantization = rewrite.type(between).quantization;
    if (quantization && quantization->axis >= 0) continue;
    PINNACE_ASSIGN(const ValueId shape, target(rewrite, *node));
    if (shape == kNoValue) continue;
    const SourceLocation source = node->source;
    rewrite.replace(*node, "reshape", {first->inputs[0], shape}, {}, source);
    if (rewrite.reader_count(between) == 0 && !rewrite.leaves(between)) rewrite.remove(*first);
  }
  return rewrite.finish();
}

}  // namespace

extern const PassDef merge_reshapes_pass;
const PassDef merge_reshapes_pass{"merge_reshapes", "merges reshapes that follow each other", 0, run};

}  // namespace pinnace
