// capture_constants: a constant that a loop or an if captures becomes a constant of its bodies. Inside, other passes
// then compute ahead with it, and back ends pack it as weights: the products of a recurrent layer that is a loop take
// it in a kernel's own layout, not as one more operand of each step. Conditions: none. Bits stay.
#include <optional>

#include "passes/pass.h"

namespace pinnace {
namespace {

/// Where captured values begin among a node's inputs. A body has `before` inputs of its own
/// for those in front of them: iteration, cond and carried values of a loop, nothing of an if.
struct Captured {
  size_t first, before;
};
std::optional<Captured> captured_of(const Node& node) {
  if (node.op == "if") return Captured{1, 0};
  const Attr* carried = node.op == "loop" ? node.attr("carried") : nullptr;
  const auto* count = carried ? std::get_if<int64_t>(carried) : nullptr;
  if (!count || *count < 0) return std::nullopt;
  const size_t first = 2 + static_cast<size_t>(*count);
  return Captured{first, first};
}

bool takes_all(const Node& node, Captured captured) {
  for (const auto& [name, attr] : node.attrs) {
    const auto* body = std::get_if<GraphPtr>(&attr);
    if (body && (*body)->inputs.size() != node.inputs.size() - captured.first + captured.before) return false;
  }
  return true;
}

Result<int> run(Graph& graph, const PassContext&) {
  int changes = 0;
  for (const auto& node : graph.nodes) {
    const std::optional<Captured> captured = captured_of(*node);
    if (!captured || node->inputs.size() <= captured->first || !takes_all(*node, *captured)) continue;
    std::vector<size_t> constants;
    for (size_t i = captured->first; i < node->inputs.size(); ++i) {
      const ValueId id = node->inputs[i];
      if (id != kNoValue && graph.value(id).constant) constants.push_back(i);
    }
    if (constants.empty()) continue;
    for (auto& [name, attr] : node->attrs) {
      auto* body = std::get_if<GraphPtr>(&attr);
      if (!body) continue;
      if (body->use_count() > 1) *body = std::make_shared<Graph>((*body)->clone());
      for (auto i = constants.rbegin(); i != constants.rend(); ++i) {
        const auto input = (*body)->inputs.begin() + static_cast<ptrdiff_t>(*i - captured->first + captured->before);
        Value& inner = (*body)->value(*input);
        const Value& outer = graph.value(node->inputs[*i]);
        inner.type = outer.type;
        inner.constant = outer.constant;
        (*body)->inputs.erase(input);
      }
    }
    for (auto i = constants.rbegin(); i != constants.rend(); ++i) {
      node->inputs.erase(node->inputs.begin() + static_cast<ptrdiff_t>(*i));
    }
    changes += static_cast<int>(constants.size());
  }
  return changes;
}

}  // namespace

extern const PassDef capture_constants_pass;
const PassDef capture_constants_pass{"capture_constants", "gives loops and branches the constants that they read", 0,
                                     run};

}  // namespace pinnace
