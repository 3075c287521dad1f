// Models stored in half precision: the nodes of a segment that compute with 16-bit floats become float32 nodes, whose
// results are rounded to the type that they had. So every float32 kernel serves three types.
#pragma once

#include <optional>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/kernel.h"

namespace pinnace {

/// f16 or bf16 for a node that computes in float32 what its operands' type rounds: its results are rounded once, to
/// that type, and its weights have 16 bits without loss. Else f32.
DType stored_as(const Node& node);

/// A segment rewritten. Values keep their ids; a wide version of one is a new value behind them.
struct Widened {
  Graph graph;  ///< values, and copies of the segment's nodes with casts between
  Inference inference;
  std::vector<int32_t> nodes;    ///< of `graph`, all of them
  std::vector<int32_t> node_of;  ///< for each node of the segment: the place in `nodes` of what computes it
};

/// Nothing if no node of the segment changes. Constants of 16 bits are widened: kOutOfMemory.
Result<std::optional<Widened>> widen_halves(const Segment& segment, CpuMode mode);

}  // namespace pinnace
