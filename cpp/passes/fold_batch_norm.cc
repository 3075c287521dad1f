// fold_batch_norm: batch_normalization after conv, conv_transpose, gemm or mat_mul goes into weights and bias. With
// s = scale / sqrt(var + epsilon): w[m] becomes w[m] * s[m] and the bias (bias[m] - mean[m]) * s[m] + b[m], in double,
// rounded once to the weights' type. Conditions: nothing else reads the product and it leaves the graph nowhere; it has
// no activation; weights, bias and statistics are constant floats; all new weights and biases are finite in the
// weights' type; the normalised axis is that of the weights (mat_mul: a result of rank 2; gemm: c has one row); no
// channel's weights underflow (see channels.h). Bound: the rounding of the largest weight of a channel for each, 2^-24
// of it (f16 2^-11, bf16 2^-8).
#include <cmath>

#include "passes/channels.h"

namespace pinnace {
namespace {

Result<bool> fold(Rewrite& rewrite, Node& norm) {
  Node* main = open_product(rewrite, norm.inputs[0]);
  if (!main || channel_axis(rewrite, *main) != 1) return false;
  const auto scale = rewrite.numbers(norm.inputs[1]), b = rewrite.numbers(norm.inputs[2]);
  const auto mean = rewrite.numbers(norm.inputs[3]), var = rewrite.numbers(norm.inputs[4]);
  if (!scale || !b || !mean || !var) return false;
  const double epsilon = rewrite.float_attr(norm, "epsilon");
  std::vector<double> s(scale->size()), t(scale->size());
  for (size_t c = 0; c < s.size(); ++c) {
    s[c] = (*scale)[c] / std::sqrt((*var)[c] + epsilon);
    t[c] = (*b)[c] - (*mean)[c] * s[c];
  }
  return fold_affine(rewrite, *main, norm, {std::move(s)}, {std::move(t)});
}

Result<int> run(Graph& graph, const PassContext& context) {
  Rewrite rewrite(graph, context);
  for (Node* node : rewrite.nodes()) {
    if (!rewrite.alive(node) || node->op != "batch_normalization" || node->inputs.size() != 5) continue;
    PINNACE_TRY(fold(rewrite, *node).status());
  }
  return rewrite.finish();
}

}  // namespace

extern const PassDef fold_batch_norm_pass;
const PassDef fold_batch_norm_pass{"fold_batch_norm", "folds batch normalisation into the weights before it", 1e-4,
                                   run};

}  // namespace pinnace
