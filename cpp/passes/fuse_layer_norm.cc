// fuse_layer_norm: (x - mean) / sqrt(variance + epsilon), with mean and variance by reduce_mean over the last
// dimensions, and a following product with a constant and sum with one, becomes layer_normalization. The square may be
// pow or mul; the division a product with reciprocal(sqrt) or 1 / sqrt. Conditions: floats; epsilon is a constant, not
// negative; inner values are read nowhere else and leave nowhere; scale and bias broadcast to x without enlarging it. A
// scale of ones is made where there is none. Bound: roundings that vanish.
#include <algorithm>

#include "passes/rewrite.h"

namespace pinnace {
namespace {

/// The first of the reduced dimensions if `node` is a reduce_mean over the last ones that keeps them, else -1.
int first_axis(const Rewrite& rewrite, const Node& node) {
  if (node.inputs.size() != 2 || int_or(node, "keepdims", 1) != 1) return -1;
  const auto axes = rewrite.numbers(node.inputs[1]);
  const int rank = rewrite.type(node.inputs[0]).rank();
  if (!axes || axes->empty()) return -1;
  std::vector<int> sorted;
  for (double a : *axes) sorted.push_back(static_cast<int>(a < 0 ? a + rank : a));
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != rank - static_cast<int>(sorted.size() - i)) return -1;
  }
  return sorted.front();
}

struct Found {
  ValueId x = kNoValue;
  int axis = 0;
  double epsilon = 0;
  std::vector<Node*> nodes;  ///< before the last one
  Node* mean = nullptr;
};

/// id = sqrt(mean(d * d) + epsilon) with d = x - mean(x).
std::optional<Found> match_deviation(const Rewrite& rewrite, ValueId d, ValueId id) {
  Node* sub = rewrite.producer(d, "sub");
  Node* root = rewrite.producer(id, "sqrt");
  Node* sum = root ? rewrite.producer(root->inputs[0], "add") : nullptr;
  if (!sub || !sum || sum->attr("activation")) return std::nullopt;
  Found found{.x = sub->inputs[0], .mean = rewrite.producer(sub->inputs[1], "reduce_mean")};
  Node *variance = nullptr, *square = nullptr;
  either_order(*sum, [&](ValueId a, ValueId b) {
    variance = rewrite.producer(a, "reduce_mean");
    const auto epsilon = rewrite.scalar(b);
    found.epsilon = epsilon.value_or(-1);
    return variance && epsilon;
  });
  if (!variance || !(found.epsilon >= 0) || !found.mean || found.mean->inputs[0] != found.x) return std::nullopt;
  square = rewrite.producer(variance->inputs[0]);
  if (!square || square->inputs.size() != 2 || square->inputs[0] != d) return std::nullopt;
  const bool squared = (square->op == "mul" && square->inputs[1] == d) ||
                       (square->op == "pow" && rewrite.is_scalar(square->inputs[1], 2));
  found.axis = first_axis(rewrite, *variance);
  if (!squared || found.axis < 0 || first_axis(rewrite, *found.mean) != found.axis) return std::nullopt;
  found.nodes = {root, sum, variance, square, sub, found.mean};
  return found;
}

std::optional<Found> match(const Rewrite& rewrite, const Node& node) {
  if (node.inputs.size() != 2) return std::nullopt;
  if (node.op == "div") return match_deviation(rewrite, node.inputs[0], node.inputs[1]);
  if (node.op != "mul") return std::nullopt;
  std::optional<Found> found;
  either_order(node, [&](ValueId d, ValueId r) {
    Node* inverse = rewrite.producer(r);
    ValueId root = kNoValue;
    if (inverse && inverse->op == "reciprocal") root = inverse->inputs[0];
    if (inverse && inverse->op == "div" && rewrite.is_scalar(inverse->inputs[0], 1)) root = inverse->inputs[1];
    if (root == kNoValue) return false;
    found = match_deviation(rewrite, d, root);
    if (found) found->nodes.push_back(inverse);
    return found.has_value();
  });
  return found;
}

/// A constant beside `value` in its only reader, an `op` whose result has the type of `value`; moves `last` on to it.
ValueId constant_beside(const Rewrite& rewrite, std::string_view op, Node*& last, std::vector<Node*>& nodes) {
  const ValueId value = last->outputs[0];
  if (!rewrite.inner(value)) return kNoValue;
  Node* reader = rewrite.readers(value)[0];
  if (reader->op != op || reader->inputs.size() != 2 || reader->attr("activation")) return kNoValue;
  const ValueId other = reader->inputs[reader->inputs[0] == value ? 1 : 0];
  const Value& constant = rewrite.graph().value(other);
  if (!constant.constant || constant.type.quantized() || rewrite.type(other).rank() > rewrite.type(value).rank())
    return kNoValue;
  if (!(rewrite.type(reader->outputs[0]) == rewrite.type(value))) return kNoValue;
  nodes.push_back(last);
  last = reader;
  return other;
}

Result<bool> fuse(Rewrite& rewrite, Node& normalized) {
  auto found = match(rewrite, normalized);
  if (!found) return false;
  const TensorType type = rewrite.type(found->x);
  if (!is_float_type(type.dtype) || !(type == rewrite.type(normalized.outputs[0]))) return false;
  if (!rewrite.closed(found->nodes, &normalized)) return false;
  Node* last = &normalized;
  ValueId scale = constant_beside(rewrite, "mul", last, found->nodes);
  const ValueId bias = constant_beside(rewrite, "add", last, found->nodes);
  if (scale == kNoValue) {
    Shape shape(type.shape.begin() + found->axis, type.shape.end());
    if (!rewrite.affords({type.dtype, shape, nullptr})) return false;
    PINNACE_ASSIGN(scale, rewrite.add_constant(rewrite.graph().value(last->outputs[0]).name + ".scale", type.dtype,
                                               std::move(shape), [](size_t) { return 1.0; }));
  }
  const SourceLocation source = normalized.source;
  rewrite.replace(*last, "layer_normalization", {found->x, scale, bias},
                  {{"axis", int64_t{found->axis - type.rank()}}, {"epsilon", found->epsilon}}, source);
  if (found->axis == type.rank() - 1) last->remove_attr("axis");
  rewrite.remove(found->nodes);
  return true;
}

Result<int> run(Graph& graph, const PassContext& context) {
  Rewrite rewrite(graph, context);
  for (Node* node : rewrite.nodes()) {
    if (rewrite.alive(node)) PINNACE_TRY(fuse(rewrite, *node).status());
  }
  return rewrite.finish();
}

}  // namespace

extern const PassDef fuse_layer_norm_pass;
const PassDef fuse_layer_norm_pass{"fuse_layer_norm", "finds layer normalisation in its formula", 1e-5, run};

}  // namespace pinnace
