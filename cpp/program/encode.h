// From Graph to the FlatBuffer of section "graph" and the parts of section "weights".
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"
#include "program/container.h"
#include "program/format_generated.h"

namespace pinnace {

struct EncodedGraph {
  flatbuffers::DetachedBuffer model;
  /// Distinct constants, those of at most kCheckedAtOnce bytes first, then in order of first mention; each to start at
  /// a multiple of 64. Borrowed from the graph.
  std::vector<std::span<const std::byte>> weights;
};

/// `graph` has been verified. A nested graph that several nodes share is written for each of them.
/// kUnsupported if what is beside the weights may exceed 256 MiB, or for more than 65536 graphs.
Result<EncodedGraph> encode_graph(const Graph& graph);

}  // namespace pinnace
