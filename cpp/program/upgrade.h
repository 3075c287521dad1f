// Operators of older versions become those of this build, one version at a time. A file is read for ever: whoever
// raises an OpDef's version adds the step here.
#pragma once

#include <span>
#include <string_view>

#include "ops/type_inference.h"

namespace pinnace {

struct Upgrade {
  std::string_view op;
  int32_t from;
  /// Makes `node`, which is of version `from`, mean the same as one of version from + 1: attributes, inputs, the
  /// operator's name. May add values and constants to `graph`, no nodes. The version is set by the caller.
  Status (*run)(Graph& graph, Node& node);
};

/// All steps of this build.
std::span<const Upgrade> all_upgrades();

/// Brings every node of the graph, and of those nested in it, to the version that `ops` has. Nodes whose operator is
/// not in `ops` are left alone. Returns how many nodes changed; kUnsupported where a step is missing.
Result<int> upgrade_graph(Graph& graph, const OpTable& ops, std::span<const Upgrade> upgrades);

}  // namespace pinnace
