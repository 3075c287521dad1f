// fuse_activation: a unary function that unary.inc marks FUSED or EPILOGUE, after an operator that has the attributes
// `activation` and `activation_params` (conv, conv_transpose, gemm, mat_mul, add), becomes these, so that a kernel
// applies it to results that are still in registers. Conditions: nothing else reads the intermediate value and it
// leaves the graph nowhere; the producer has no activation yet; floats, or relu and clip between two values of the same
// quantised type (then the stored integers are the same); limits of clip are constants and not NaN. Bound: one rounding
// to the element type less per fused node.
#include <cmath>

#include "ops/activation.h"
#include "passes/rewrite.h"

namespace pinnace {
namespace {

std::optional<Activation> activation_of(const Rewrite& rewrite, const Node& node) {
  if (node.inputs.empty() || node.outputs.size() != 1) return std::nullopt;
  const auto found = rewrite.unary(node);
  if (!found || !is_activation(found->kind) || std::isnan(found->p) || std::isnan(found->q)) return std::nullopt;
  return found;
}

bool takes_activation(const Rewrite& rewrite, const Node& node) {
  return carries_activation(rewrite.op(node)) && node.outputs.size() == 1 && string_or(node, "activation", "").empty();
}

Result<int> run(Graph& graph, const PassContext& context) {
  Rewrite rewrite(graph, context);
  for (Node* node : rewrite.nodes()) {
    if (!rewrite.alive(node)) continue;
    const auto activation = activation_of(rewrite, *node);
    if (!activation) continue;
    const ValueId x = node->inputs[0];
    Node* main = rewrite.producer(x);
    if (!main || !takes_activation(rewrite, *main) || !rewrite.inner(x)) continue;
    const TensorType &from = rewrite.type(x), &to = rewrite.type(node->outputs[0]);
    const bool clamp = from.quantized() && from == to && activation->is_clamp();
    if (!is_float_type(from.dtype) && !clamp) continue;
    auto attrs = main->attrs;
    auto inputs = main->inputs;
    rewrite.replace(*node, main->op, std::move(inputs), std::move(attrs), main->source);
    node->set_attr("activation", std::string(unary_name(activation->kind)));
    if (const size_t count = unary_parameters(activation->kind).size()) {
      std::vector<double> params = {activation->p, activation->q};
      params.resize(count);
      node->set_attr("activation_params", std::move(params));
    }
    rewrite.remove(*main);
  }
  return rewrite.finish();
}

}  // namespace

extern const PassDef fuse_activation_pass;
const PassDef fuse_activation_pass{"fuse_activation",
                                   "lets conv, gemm, mat_mul and add apply the activation after them", 1e-5, run};

}  // namespace pinnace
