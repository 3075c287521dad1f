// The table of steps, and walking it.
#include "program/upgrade.h"

#include <algorithm>

namespace pinnace {

// Every operator is of version 1 so far, so the table is empty.
std::span<const Upgrade> all_upgrades() {
  return {};
}

Result<int> upgrade_graph(Graph& graph, const OpTable& ops, std::span<const Upgrade> upgrades) {
  int changed = 0;
  for (auto& node : graph.nodes) {
    const OpDef* op = ops.find(node->op);
    bool stepped = false;
    while (op && node->version < op->version) {
      const auto step = std::find_if(upgrades.begin(), upgrades.end(),
                                     [&](const Upgrade& u) { return u.op == node->op && u.from == node->version; });
      if (step == upgrades.end()) {
        return unsupported("operator ", node->op, " is of version ", node->version, ", this build has ", op->version,
                           " and no step from ", node->version, " (node '", node->name, "')");
      }
      PINNACE_TRY(step->run(graph, *node).with_prefix(str_cat("upgrade of ", node->op, " '", node->name, "': ")));
      node->version = step->from + 1;
      stepped = true;
      op = ops.find(node->op);
    }
    changed += stepped;
    for (auto& [name, attr] : node->attrs) {
      if (auto* nested = std::get_if<GraphPtr>(&attr)) {
        PINNACE_ASSIGN(const int inner, upgrade_graph(**nested, ops, upgrades));
        changed += inner;
      }
    }
  }
  return changed;
}

}  // namespace pinnace
