// Rows that name texts which are kept once.
#include "backends/node_timings.h"

#include "graph/graph.h"

namespace pinnace {

std::string_view NodeTimings::own(std::string_view text) {
  const auto there = texts_.find(text);
  return there == texts_.end() ? *texts_.emplace(text).first : *there;
}

void NodeTimings::add(const Node& node, std::string_view backend, std::string_view kernel, Time start, Time end) {
  rows_.push_back({own(node.name), own(node.op), own(node.source.module), own(backend), own(kernel), start, end});
}

}  // namespace pinnace
