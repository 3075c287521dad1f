// stream_graph: a graph that takes a whole sequence becomes one that takes it in chunks of any size and keeps what it
// needs of earlier chunks in states. docs/streaming.md says what that means for a user.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <pinnace/program.h>

#include "graph/graph.h"
#include "ops/type_inference.h"

namespace pinnace {

/// An input that comes in chunks along one of its axes. Several share one time: their axes have the same symbol.
struct StreamRequest {
  std::string input;
  int axis = 0;
};

struct Streamed {
  Graph graph;
  std::vector<StreamedInput> inputs;
  std::vector<StreamedOutput> outputs;
};

/// Chunks' outputs joined are S with S[L:] = Y[: len - L] and S[:L] = 0 for the whole graph's output Y, where L is
/// latency * up / down. Where an operator pads a value that lags behind, or counts elements, the graph has one or both
/// of these states: `<input>.seen`, how many elements there were, kMostSeen where there were more; and `<input>.open`,
/// 1 until the input has ended and 0 in the run that brings out what is left.
///
/// kInvalidArgument: there is no such input or axis, or its size is fixed. kConversion: in nodes() every node whose
/// result needs what is not there yet, or that has no rule, with the reason.
Result<Streamed> stream_graph(const Graph& whole, std::span<const StreamRequest> streams, const OpTable& ops);

/// As far as elements are counted, which no chunk reaches: fits 32 bits, which some devices have.
inline constexpr int64_t kMostSeen = int64_t{1} << 30;

}  // namespace pinnace
