// fold_scale: a product with a constant, or a division by one, after conv, conv_transpose, gemm or mat_mul goes into
// its weights and bias. The constant is one number, or one per output channel. Conditions: as for fold_batch_norm; the
// constant does not enlarge the result; weights and bias are constants; a divisor is not 0. Bound: as for
// fold_batch_norm.
#include "passes/channels.h"

namespace pinnace {
namespace {

Result<bool> fold(Rewrite& rewrite, Node& last) {
  for (size_t i = 0; i < (last.op == "mul" ? 2u : 1u); ++i) {
    Node* main = open_product(rewrite, last.inputs[i]);
    if (!main) continue;
    const TensorType& y = rewrite.type(last.inputs[i]);
    auto s = channel_numbers(rewrite, last.inputs[1 - i], y, channel_axis(rewrite, *main));
    if (!s || !(y == rewrite.type(last.outputs[0]))) continue;
    if (last.op == "div") {
      for (double& x : s->numbers) x = 1 / x;
    }
    return fold_affine(rewrite, *main, last, *s, {{0.0}});
  }
  return false;
}

Result<int> run(Graph& graph, const PassContext& context) {
  Rewrite rewrite(graph, context);
  for (Node* node : rewrite.nodes()) {
    if (!rewrite.alive(node) || (node->op != "mul" && node->op != "div") || node->inputs.size() != 2) continue;
    PINNACE_TRY(fold(rewrite, *node).status());
  }
  return rewrite.finish();
}

}  // namespace

extern const PassDef fold_scale_pass;
const PassDef fold_scale_pass{"fold_scale", "folds constant factors into the weights before them", 1e-4, run};

}  // namespace pinnace
