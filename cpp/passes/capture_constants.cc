// capture_constants: a constant that a loop or an if captures becomes a constant of its bodies. Inside, other passes
// then compute ahead with it, and back ends pack it as weights: the products of a recurrent layer that is a loop take
// it in a kernel's own layout, not as one more operand of each step. Conditions: the bodies' types fit the constants; a
// branch that is never taken may be for others. Bits stay.
#include <optional>
#include <span>
#include <vector>

#include "ops/bodies.h"
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

/// A copy of a body in which its inputs `places` are the constants `given`.
GraphPtr with_constants(const Graph& body, std::span<const size_t> places, std::span<const Value* const> given) {
  auto made = std::make_shared<Graph>(body.clone());
  for (size_t i = places.size(); i-- > 0;) {
    const auto input = made->inputs.begin() + static_cast<ptrdiff_t>(places[i]);
    Value& inner = made->value(*input);
    inner.type = given[i]->type;
    inner.constant = given[i]->constant;
    made->inputs.erase(input);
  }
  return made;
}

/// Captures what it can of a node's constants; how many.
Result<int> capture(const Graph& graph, Node& node, Captured captured, const OpTable& ops) {
  std::vector<size_t> constants, places;
  std::vector<const Value*> given;
  for (size_t i = captured.first; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    if (id == kNoValue || !graph.value(id).constant) continue;
    constants.push_back(i);
    places.push_back(i - captured.first + captured.before);
    given.push_back(&graph.value(id));
  }
  if (constants.empty()) return 0;
  std::vector<std::pair<Attr*, GraphPtr>> bodies;
  for (auto& [name, attr] : node.attrs) {
    const auto* body = std::get_if<GraphPtr>(&attr);
    if (!body) continue;
    bodies.emplace_back(&attr, with_constants(**body, places, given));
    const auto types = infer_what_may_fail(*bodies.back().second, ops);
    if (!types && types.status().code() == Code::kCancelled) return types.status();
    if (!types) return 0;
  }
  for (auto& [attr, body] : bodies) *attr = std::move(body);
  for (size_t i = constants.size(); i-- > 0;) {
    node.inputs.erase(node.inputs.begin() + static_cast<ptrdiff_t>(constants[i]));
  }
  return static_cast<int>(constants.size());
}

Result<int> run(Graph& graph, const PassContext& context) {
  int changes = 0;
  for (const auto& node : graph.nodes) {
    const std::optional<Captured> captured = captured_of(*node);
    if (!captured || node->inputs.size() <= captured->first || !takes_all(*node, *captured)) continue;
    PINNACE_ASSIGN(const int count, capture(graph, *node, *captured, context.ops));
    changes += count;
  }
  return changes;
}

}  // namespace

extern const PassDef capture_constants_pass;
const PassDef capture_constants_pass{"capture_constants", "gives loops and branches the constants that they read", 0,
                                     run};

}  // namespace pinnace
