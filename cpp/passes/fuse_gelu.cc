// fuse_gelu: x / 2 * (1 + erf(x / sqrt 2)) becomes gelu; x / 2 * (1 + tanh(u)) with u = sqrt(2 / pi) * (x + 0.044715
// x^3) becomes gelu with approximate = "tanh". Factors stand in any order, may be divisions, and u may be written
// sqrt(2 / pi) * x * (1 + 0.044715 x^2); cubes and squares may be pow or mul.
// Conditions: floats; constants as stated, to three digits; inner values are read nowhere else and leave nowhere.
// Bound: the roundings of the nodes that vanish, and of constants written with few digits.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "passes/rewrite.h"

namespace pinnace {
namespace {

bool near(double a, double b) {
  return std::fabs(a - b) <= 1e-3 * std::fabs(b);
}

void append(std::vector<Node*>& to, const std::vector<Node*>& nodes) {
  to.insert(to.end(), nodes.begin(), nodes.end());
}

/// How often x is a factor of the product, with pow(x, n) counted as n times; -1 if there are other terms.
int power_of(const Rewrite& rewrite, const Product& product, ValueId x, std::vector<Node*>& pattern) {
  int power = 0;
  for (ValueId term : product.terms) {
    Node* pow = rewrite.producer(term, "pow");
    if (term == x) {
      ++power;
    } else if (pow && pow->inputs[0] == x &&
               (rewrite.is_scalar(pow->inputs[1], 2) || rewrite.is_scalar(pow->inputs[1], 3))) {
      power += rewrite.is_scalar(pow->inputs[1], 2) ? 2 : 3;
      pattern.push_back(pow);
    } else {
      return -1;
    }
  }
  return power;
}

/// id = base + 0.044715 * x^power, where base is x or the number 1.
bool is_cubic(const Rewrite& rewrite, ValueId id, ValueId x, bool base_is_x, std::vector<Node*>& pattern) {
  Node* sum = rewrite.producer(id, "add");
  if (!sum || sum->attr("activation")) return false;
  return either_order(*sum, [&](ValueId base, ValueId other) {
    if (base_is_x ? base != x : !rewrite.is_scalar(base, 1)) return false;
    const Product product = product_of(rewrite, other);
    std::vector<Node*> found = product.nodes;
    if (!near(product.factor, 0.044715) || power_of(rewrite, product, x, found) != (base_is_x ? 3 : 2)) return false;
    pattern.push_back(sum);
    append(pattern, found);
    return true;
  });
}

/// id = sqrt(2 / pi) * (x + 0.044715 x^3)
bool is_tanh_argument(const Rewrite& rewrite, ValueId id, ValueId x, std::vector<Node*>& pattern) {
  const Product product = product_of(rewrite, id);
  if (!near(product.factor, std::sqrt(2 / std::numbers::pi))) return false;
  std::vector<Node*> found = product.nodes;
  bool matched = false;
  if (product.terms.size() == 1) matched = is_cubic(rewrite, product.terms[0], x, true, found);
  if (product.terms.size() == 2) {
    const auto& t = product.terms;
    matched = (t[0] == x && is_cubic(rewrite, t[1], x, false, found)) ||
              (t[1] == x && is_cubic(rewrite, t[0], x, false, found));
  }
  if (matched) append(pattern, found);
  return matched;
}

/// id = 1 + erf(x / sqrt 2) or 1 + tanh(...).
bool is_gate(const Rewrite& rewrite, ValueId id, ValueId x, bool& exact, std::vector<Node*>& pattern) {
  Node* sum = rewrite.producer(id, "add");
  if (!sum || sum->attr("activation")) return false;
  return either_order(*sum, [&](ValueId one, ValueId other) {
    if (!rewrite.is_scalar(one, 1)) return false;
    std::vector<Node*> found = {sum};
    if (Node* erf = rewrite.producer(other, "erf")) {
      const Product argument = product_of(rewrite, erf->inputs[0]);
      if (argument.terms != std::vector<ValueId>{x} || !near(argument.factor, 1 / std::numbers::sqrt2)) return false;
      found.push_back(erf);
      append(found, argument.nodes);
      exact = true;
    } else if (Node* tanh = rewrite.producer(other, "tanh")) {
      found.push_back(tanh);
      if (!is_tanh_argument(rewrite, tanh->inputs[0], x, found)) return false;
      exact = false;
    } else {
      return false;
    }
    append(pattern, found);
    return true;
  });
}

bool fuse(Rewrite& rewrite, Node& last) {
  const auto product = product_of(rewrite, last);
  if (!product) return false;
  std::vector<Node*> pattern = product->nodes;
  ValueId x = kNoValue;
  bool exact = true;
  const bool matched = is_product_with(*product, 0.5, [&](ValueId a, ValueId b) {
    x = a;
    return is_gate(rewrite, b, a, exact, pattern);
  });
  if (!matched || !(rewrite.type(x) == rewrite.type(last.outputs[0])) || !rewrite.closed(pattern, &last)) return false;
  const SourceLocation source = last.source;
  rewrite.replace(last, "gelu", {x}, {}, source);
  if (!exact) last.set_attr("approximate", std::string("tanh"));
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

extern const PassDef fuse_gelu_pass;
const PassDef fuse_gelu_pass{"fuse_gelu", "finds gelu in its formulas", 1e-5, run};

}  // namespace pinnace
