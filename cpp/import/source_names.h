// What a source model calls the values and nodes of a graph. An importer gives these names when the graph is complete:
// before that it cannot know which of the names that it makes up itself the source has for something else.
#pragma once

#include <string>
#include <unordered_map>

#include "graph/graph.h"

namespace pinnace {

/// By value and by node; the others have names that the importer made up, or those of weights and states.
struct SourceNames {
  std::unordered_map<ValueId, std::string> values;
  std::unordered_map<const Node*, std::string> nodes;
};

/// Renames values and nodes: inputs of the graph keep their names, then each value and node gets its source's, the
/// first one where several have the same. All others keep their own, with a number appended where that is taken. Names
/// are unique afterwards. Call Graph::compact() before anything is added: it drops the index of names.
void settle_names(Graph& graph, const SourceNames& names);

}  // namespace pinnace
