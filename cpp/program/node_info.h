// The nodes and constants of a graph and of those nested in it, for reports.
#pragma once

#include <vector>

#include <pinnace/program.h>

#include "graph/graph.h"

namespace pinnace {

/// In execution order; the nodes of nested graphs follow the node that holds them, in the order of its attributes.
std::vector<NodeInfo> node_infos(const Graph& graph);
/// The graph's own first, then those of nested graphs in the order of nodes; names are unique within one graph alone.
std::vector<TensorSpec> constant_specs(const Graph& graph);

}  // namespace pinnace
