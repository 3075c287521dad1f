// common_subexpressions: of nodes with the same operator, attributes, inputs and output types only the first stays.
// Constants of at most 4096 bytes with the same type and bytes count as the same input. No arithmetic changes.
// Conditions: a built-in operator without bodies; no result of the node that goes leaves the graph.
#include <algorithm>
#include <cstring>
#include <map>

#include "passes/rewrite.h"

namespace pinnace {
namespace {

constexpr size_t kConstantBytes = 4096;

/// What makes two values of a graph the same input: for constants type and bytes, else the id.
class Representatives {
 public:
  explicit Representatives(const Graph& graph) : graph_(graph) {}
  ValueId of(ValueId id) {
    if (id == kNoValue) return id;
    const Value& v = graph_.value(id);
    if (!v.constant || v.constant->bytes() > kConstantBytes) return id;
    std::string key(reinterpret_cast<const char*>(v.constant->data()), v.constant->bytes());
    for (ValueId other : seen_[key]) {
      if (graph_.value(other).type == v.type) return other;
    }
    seen_[key].push_back(id);
    return id;
  }

 private:
  const Graph& graph_;
  std::map<std::string, std::vector<ValueId>> seen_;
};

using Key = std::pair<std::string, std::vector<ValueId>>;

bool same_node(const Rewrite& rewrite, const Node& a, const Node& b) {
  if (a.version != b.version || a.attrs != b.attrs || a.outputs.size() != b.outputs.size()) return false;
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    if (!(rewrite.type(a.outputs[i]) == rewrite.type(b.outputs[i]))) return false;
  }
  return true;
}

bool may_go(const Rewrite& rewrite, const PassContext& context, const Node& node) {
  const OpDef* op = context.ops.find(node.op);
  if (!op || op->context) return false;
  const bool body = std::any_of(node.attrs.begin(), node.attrs.end(),
                                [](const auto& attr) { return std::holds_alternative<GraphPtr>(attr.second); });
  return !body &&
         std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) { return rewrite.leaves(id); });
}

Result<int> run(Graph& graph, const PassContext& context) {
  Rewrite rewrite(graph, context);
  Representatives representatives(graph);
  std::map<Key, std::vector<Node*>> seen;
  for (Node* node : rewrite.nodes()) {
    Key key{node->op, {}};
    for (ValueId id : node->inputs) key.second.push_back(representatives.of(id));
    std::vector<Node*>& candidates = seen[key];
    const auto found = std::find_if(candidates.begin(), candidates.end(),
                                    [&](const Node* other) { return same_node(rewrite, *other, *node); });
    if (found == candidates.end()) {
      candidates.push_back(node);
    } else if (may_go(rewrite, context, *node)) {
      rewrite.merge_into(*node, **found);
    }
  }
  return rewrite.finish();
}

}  // namespace

extern const PassDef common_subexpressions_pass;
const PassDef common_subexpressions_pass{"common_subexpressions", "computes what is computed twice only once", 0, run};

}  // namespace pinnace
