// fuse_hard_swish: x * clip(x + 3, 0, 6) / 6, its factors in any order, becomes hard_swish; so does x * hard_sigmoid(x)
// with alpha 1/6 and beta 1/2; and clip(x + 3, 0, 6) / 6 alone becomes that hard_sigmoid. The clip may be one node or
// two (clip, min, max, relu), as PyTorch's decompositions write it. Conditions: floats; constants as stated, to three
// digits for 1/6; inner values are read nowhere else and leave nowhere. Bound: roundings of the nodes that vanish.
#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/rewrite.h"

namespace pinnace {
namespace {

/// id = min(max(x, low), high), perhaps with one limit only, through nodes that are appended to `nodes`.
struct Limits {
  ValueId x;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  std::vector<Node*> nodes;
};

bool narrow_limits(const Rewrite& rewrite, Limits& limits) {
  Node* node = rewrite.producer(limits.x);
  if (!node || node->inputs.empty()) return false;
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  ValueId x = node->inputs[0];
  if (node->op == "relu") {
    low = 0;
  } else if (node->op == "clip") {
    for (size_t i = 1; i < node->inputs.size(); ++i) {
      if (node->inputs[i] == kNoValue) continue;
      const auto number = rewrite.scalar(node->inputs[i]);
      if (!number) return false;
      (i == 1 ? low : high) = *number;
    }
  } else if ((node->op == "max" || node->op == "min") && node->inputs.size() == 2) {
    std::optional<double> number;
    either_order(*node, [&](ValueId a, ValueId b) {
      x = a;
      return (number = rewrite.scalar(b)).has_value();
    });
    if (!number) return false;
    (node->op == "max" ? low : high) = *number;
  } else {
    return false;
  }
  limits.low = std::max(limits.low, low);
  limits.high = std::min(limits.high, high);
  limits.x = x;
  limits.nodes.push_back(node);
  return true;
}

/// If id = clip(x + 3, 0, 6): x, and the nodes from id back.
std::optional<Limits> gate(const Rewrite& rewrite, ValueId id) {
  Limits found{.x = id};
  for (int i = 0; i < 2 && !(found.low == 0 && found.high == 6); ++i) {
    if (!narrow_limits(rewrite, found)) return std::nullopt;
  }
  Node* sum = rewrite.producer(found.x, "add");
  if (!sum || found.low != 0 || found.high != 6 || sum->attr("activation")) return std::nullopt;
  const bool shifted = either_order(*sum, [&](ValueId a, ValueId b) {
    found.x = a;
    return rewrite.is_scalar(b, 3);
  });
  if (!shifted || !(rewrite.type(found.x) == rewrite.type(id))) return std::nullopt;
  found.nodes.push_back(sum);
  return found;
}

bool is_sixth_sigmoid(const Rewrite& rewrite, const Node* node) {
  return node && std::fabs(rewrite.float_attr(*node, "alpha") * 6 - 1) < 1e-4 &&
         rewrite.float_attr(*node, "beta") == 0.5;
}

bool fuse(Rewrite& rewrite, Node& last) {
  const auto product = product_of(rewrite, last);
  if (!product) return false;
  std::vector<Node*> pattern = product->nodes;
  if (product->terms.size() == 1 && std::fabs(product->factor * 6 - 1) < 1e-3) {
    const auto found = gate(rewrite, product->terms[0]);
    if (!found) return false;
    pattern.insert(pattern.end(), found->nodes.begin(), found->nodes.end());
    if (!rewrite.closed(pattern, &last)) return false;
    const SourceLocation source = last.source;
    rewrite.replace(last, "hard_sigmoid", {found->x}, {{"alpha", 1.0 / 6}}, source);
    rewrite.remove(pattern);
    return true;
  }
  ValueId x = kNoValue;
  const bool matched = is_product_with(*product, 1,
                                       [&](ValueId a, ValueId other) {
                                         Node* sigmoid = rewrite.producer(other, "hard_sigmoid");
                                         if (!is_sixth_sigmoid(rewrite, sigmoid) || sigmoid->inputs[0] != a)
                                           return false;
                                         x = a;
                                         pattern.push_back(sigmoid);
                                         return true;
                                       }) ||
                       is_product_with(*product, 1.0 / 6, [&](ValueId a, ValueId other) {
                         const auto found = gate(rewrite, other);
                         if (!found || found->x != a) return false;
                         x = a;
                         pattern.insert(pattern.end(), found->nodes.begin(), found->nodes.end());
                         return true;
                       });
  if (!matched || !rewrite.closed(pattern, &last)) return false;
  const SourceLocation source = last.source;
  rewrite.replace(last, "hard_swish", {x}, {}, source);
  rewrite.remove(pattern);
  return true;
}

Result<int> run(Graph& graph, const PassContext& context) {
  Rewrite rewrite(graph, context);
  for (Node* node : rewrite.nodes()) {
    if (rewrite.alive(node) && (node->op == "mul" || node->op == "div")) fuse(rewrite, *node);
  }
  return rewrite.finish();
}

}  // namespace

extern const PassDef fuse_hard_swish_pass;
const PassDef fuse_hard_swish_pass{"fuse_hard_swish", "finds hard_swish and hard_sigmoid in their formulas", 1e-5, run};

}  // namespace pinnace
