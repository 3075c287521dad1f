// cancel_identities: nodes that give what they read are bypassed: operators with Trait::kKeepsSameType (casts, views,
// expand) whose result has the type of the value; transpose that changes no dimension; operators with
// Trait::kKeepsOnlyInput (concat, sum, mean, max, min) of one input; adding or subtracting 0, multiplying with or
// dividing by 1. Conditions: the result has the type of the value read, every dimension known or the same symbol. A
// result that leaves the graph passes its name to the node that makes the value; where that is not possible (an input,
// a constant, a value that leaves too) the node stays. Bits stay, save that -0 + 0 would be 0.
#include <algorithm>

#include "passes/rewrite.h"

namespace pinnace {
namespace {

bool surely_equal(const TensorType& a, const TensorType& b) {
  return a == b && std::all_of(a.shape.begin(), a.shape.end(), [](Dim d) { return d.known() || d.symbol >= 0; });
}

/// The input that the node passes on, or kNoValue.
ValueId passed_on(const Rewrite& rewrite, const Node& node) {
  if (node.outputs.size() != 1 || node.inputs.empty() || node.inputs[0] == kNoValue) return kNoValue;
  const ValueId x = node.inputs[0];
  if (rewrite.has(node, Trait::kKeepsSameType)) return x;
  if (node.op == "transpose") {
    const auto perm = ints_or_empty(node, "perm");
    if (perm.empty()) return rewrite.type(x).rank() < 2 ? x : kNoValue;
    for (size_t i = 0; i < perm.size(); ++i) {
      if (perm[i] != static_cast<int64_t>(i)) return kNoValue;
    }
    return x;
  }
  if (node.inputs.size() == 1 && rewrite.has(node, Trait::kKeepsOnlyInput)) return x;
  if (node.inputs.size() != 2 || rewrite.type(x).quantized() || !string_or(node, "activation", "").empty())
    return kNoValue;
  if ((node.op == "add" || node.op == "sub") && rewrite.is_scalar(node.inputs[1], 0)) return x;
  if ((node.op == "mul" || node.op == "div") && rewrite.scalar(node.inputs[1]) == 1.0) return x;
  if (node.op == "add" && rewrite.is_scalar(x, 0)) return node.inputs[1];
  if (node.op == "mul" && rewrite.scalar(x) == 1.0) return node.inputs[1];
  return kNoValue;
}

Result<int> run(Graph& graph, const PassContext& context) {
  Rewrite rewrite(graph, context);
  for (Node* node : rewrite.nodes()) {
    if (!rewrite.alive(node)) continue;
    const ValueId x = passed_on(rewrite, *node);
    if (x != kNoValue && surely_equal(rewrite.type(x), rewrite.type(node->outputs[0]))) rewrite.bypass(*node, x);
  }
  return rewrite.finish();
}

}  // namespace

extern const PassDef cancel_identities_pass;
const PassDef cancel_identities_pass{"cancel_identities", "bypasses nodes that give what they read", 0, run};

}  // namespace pinnace
