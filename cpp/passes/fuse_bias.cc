// fuse_bias: adding or subtracting a constant after conv, conv_transpose, gemm or mat_mul becomes their bias, or goes
// into the constant bias they have. The constant is one number, or one per output channel: [C, 1, 1] after a
// convolution in the plane, [N] after a matrix product. An activation of the add stays. Conditions: floats; nothing
// else reads the product and it leaves the graph nowhere; it has no activation; the constant does not enlarge the
// result. Bound: the rounding of a sum of two biases, and one rounding of the product less.
#include "passes/channels.h"

namespace pinnace {
namespace {

Result<bool> fuse(Rewrite& rewrite, Node& last) {
  for (size_t i = 0; i < (last.op == "add" ? 2u : 1u); ++i) {
    Node* main = open_product(rewrite, last.inputs[i]);
    if (!main) continue;
    const TensorType& y = rewrite.type(last.inputs[i]);
    auto t = channel_numbers(rewrite, last.inputs[1 - i], y, channel_axis(rewrite, *main));
    if (!t || !(y == rewrite.type(last.outputs[0]))) continue;
    if (last.op == "sub") {
      for (double& x : t->numbers) x = -x;
    }
    const Attr* activation = last.attr("activation");
    const Attr* params = last.attr("activation_params");
    const bool has_activation = activation, has_params = params;  // both pointers end with the attributes
    const Attr kept = activation ? *activation : Attr(std::string()),
               kept_params = params ? *params : Attr(std::vector<double>());
    PINNACE_ASSIGN(const bool done, fold_affine(rewrite, *main, last, {}, *t));
    if (done && has_activation) last.set_attr("activation", kept);
    if (done && has_params) last.set_attr("activation_params", kept_params);
    return done;
  }
  return false;
}

Result<int> run(Graph& graph, const PassContext& context) {
  Rewrite rewrite(graph, context);
  for (Node* node : rewrite.nodes()) {
    if (!rewrite.alive(node) || (node->op != "add" && node->op != "sub") || node->inputs.size() != 2) continue;
    PINNACE_TRY(fuse(rewrite, *node).status());
  }
  return rewrite.finish();
}

}  // namespace

extern const PassDef fuse_bias_pass;
const PassDef fuse_bias_pass{"fuse_bias", "makes constants added to products their bias", 1e-5, run};

}  // namespace pinnace
