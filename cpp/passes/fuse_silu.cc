// fuse_silu: x * sigmoid(x), and x / (1 + exp(-x)), become silu.
// Conditions: floats; inner values are read nowhere else and leave nowhere. Bound: the roundings of the nodes that
// vanish.
#include "passes/rewrite.h"

namespace pinnace {
namespace {

bool fuse(Rewrite& rewrite, Node& last) {
  std::vector<Node*> pattern;
  ValueId x = kNoValue;
  if (last.op == "mul") {
    either_order(last, [&](ValueId a, ValueId b) {
      Node* sigmoid = rewrite.producer(b, "sigmoid");
      if (!sigmoid || sigmoid->inputs[0] != a) return false;
      x = a;
      pattern = {sigmoid};
      return true;
    });
  } else {
    Node* sum = rewrite.producer(last.inputs[1], "add");
    if (!sum || sum->attr("activation")) return false;
    either_order(*sum, [&](ValueId one, ValueId b) {
      Node* exp = rewrite.producer(b, "exp");
      Node* neg = exp ? rewrite.producer(exp->inputs[0], "neg") : nullptr;
      if (!neg || neg->inputs[0] != last.inputs[0] || !rewrite.is_scalar(one, 1)) return false;
      x = last.inputs[0];
      pattern = {sum, exp, neg};
      return true;
    });
  }
  if (x == kNoValue || !(rewrite.type(x) == rewrite.type(last.outputs[0])) || !is_float_type(rewrite.type(x).dtype)) {
    return false;
  }
  if (!rewrite.closed(pattern, &last)) return false;
  const SourceLocation source = last.source;
  rewrite.replace(last, "silu", {x}, {}, source);
  rewrite.remove(pattern);
  return true;
}

Result<int> run(Graph& graph, const PassContext& context) {
  Rewrite rewrite(graph, context);
  for (Node* node : rewrite.nodes()) {
    if (rewrite.alive(node) && (node->op == "mul" || node->op == "div") && node->inputs.size() == 2)
      fuse(rewrite, *node);
  }
  return rewrite.finish();
}

}  // namespace

extern const PassDef fuse_silu_pass;
const PassDef fuse_silu_pass{"fuse_silu", "finds silu in its formula", 1e-5, run};

}  // namespace pinnace
