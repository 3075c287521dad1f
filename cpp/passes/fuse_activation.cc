// fuse_activation: relu, clip, leaky_relu, hard_swish, hard_sigmoid, sigmoid, silu, tanh or gelu after conv,
// conv_transpose, gemm, mat_mul or add becomes their attributes `activation` and `activation_params`, so that a kernel
// applies it to results that are still in registers. Conditions: nothing else reads the intermediate value and it
// leaves the graph nowhere; the producer has no activation yet; floats, or relu and clip between two values of the same
// quantised type (then the stored integers are the same); limits of clip are constants and not NaN. Bound: one rounding
// to the element type less per fused node.
#include <cmath>
#include <limits>

#include "ops/activation.h"
#include "passes/rewrite.h"

namespace pinnace {
namespace {

std::optional<Activation> activation_of(const Rewrite& rewrite, const Node& node) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (node.inputs.empty() || node.outputs.size() != 1) return std::nullopt;
  if (node.op == "gelu") {
    const bool exact = string_or(node, "approximate", "none") == "none";
    return Activation{exact ? ActivationKind::kGelu : ActivationKind::kGeluTanh};
  }
  if (node.op == "clip") {
    Activation clip{ActivationKind::kClip, -kInfinity, kInfinity};
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      const auto limit = rewrite.scalar(node.inputs[i]);
      if (!limit || std::isnan(*limit)) return std::nullopt;
      (i == 1 ? clip.a : clip.b) = *limit;
    }
    return clip;
  }
  const auto kind = activation_from_name(node.op);
  if (!kind || *kind == ActivationKind::kNone) return std::nullopt;
  Activation found{*kind};
  if (*kind == ActivationKind::kLeakyRelu) found.a = rewrite.float_attr(node, "alpha");
  if (*kind == ActivationKind::kHardSigmoid) {
    found.a = rewrite.float_attr(node, "alpha");
    found.b = rewrite.float_attr(node, "beta");
  }
  return std::isnan(found.a) || std::isnan(found.b) ? std::nullopt : std::optional(found);
}

bool carries_activation(const Node& node) {
  for (std::string_view op : {"conv", "conv_transpose", "gemm", "mat_mul", "add"}) {
    if (node.op == op) return node.outputs.size() == 1 && string_or(node, "activation", "").empty();
  }
  return false;
}

Result<int> run(Graph& graph, const PassContext& context) {
  Rewrite rewrite(graph, context);
  for (Node* node : rewrite.nodes()) {
    if (!rewrite.alive(node)) continue;
    const auto activation = activation_of(rewrite, *node);
    if (!activation) continue;
    const ValueId x = node->inputs[0];
    Node* main = rewrite.producer(x);
    if (!main || !carries_activation(*main) || !rewrite.inner(x)) continue;
    const TensorType &from = rewrite.type(x), &to = rewrite.type(node->outputs[0]);
    const bool clamp = from.quantized() && from == to && activation->is_clamp();
    if (!is_float_type(from.dtype) && !clamp) continue;
    auto attrs = main->attrs;
    auto inputs = main->inputs;
    rewrite.replace(*node, main->op, std::move(inputs), std::move(attrs), main->source);
    node->set_attr("activation", std::string(activation_name(activation->kind)));
    if (const int count = activation_param_count(activation->kind)) {
      std::vector<double> params = {activation->a, activation->b};
      params.resize(static_cast<size_t>(count));
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
