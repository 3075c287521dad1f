// dead_code: removes nodes none of whose outputs is read, kept, or leaves the graph. No arithmetic changes.
#include "passes/pass.h"

namespace pinnace {
namespace {
Result<int> run(Graph& graph, const PassContext& context) {
  const Uses uses(graph);
  std::vector<bool> live(graph.values.size(), false), dead(graph.nodes.size(), false);
  for (ValueId id : graph.outputs) live[id] = true;
  for (const State& s : graph.states) live[s.output] = true;
  int changes = 0;
  for (size_t k = graph.nodes.size(); k-- > 0;) {
    bool needed = false;
    for (ValueId id : graph.nodes[k]->outputs) needed |= live[id] || context.keeps(graph, id);
    dead[k] = !needed;
    changes += !needed;
    if (!needed) continue;
    for (ValueId id : graph.nodes[k]->inputs) {
      if (id != kNoValue) live[id] = true;
    }
  }
  if (changes) graph.erase_nodes(dead);
  return changes;
}
}  // namespace

extern const PassDef dead_code_pass;
const PassDef dead_code_pass{"dead_code", "removes nodes whose results nobody reads", 0, run};

}  // namespace pinnace
