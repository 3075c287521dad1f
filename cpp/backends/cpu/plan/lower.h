// From a segment's nodes to what the CPU runs: which kernel, in which layout each value is kept, where layouts change,
// and which additions a convolution does itself. The graph does not know of any of it.
#pragma once

#include <deque>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/kernel.h"

namespace pinnace::cpu {

/// One step. Values are indices into Lowered::types.
struct LoweredNode {
  enum class Kind : uint8_t { kOperator, kToNhwc, kToDense } kind = Kind::kOperator;
  const Node* node = nullptr;           ///< the graph's, or a copy in Lowered::copies
  const Node* source = nullptr;         ///< the graph's node that this step is timed as
  const OpDef* op = nullptr;            ///< null unless kOperator
  const CpuKernelLine* line = nullptr;  ///< null: reference code
  std::vector<ValueId> inputs, outputs;
};

struct Lowered {
  std::vector<LoweredNode> nodes;
  std::vector<TensorType> types;  ///< the graph's values, then those that only the CPU has
  std::vector<ConstantPtr> data;  ///< known contents, or null
  std::vector<Layout> layouts;    ///< an image where the value is one; all outputs are dense
  std::vector<ValueId> outputs;   ///< of the segment, in its order
  std::vector<int32_t> node_of;   ///< for each node of the segment: which of `nodes` computes it
  std::deque<Node> copies;
};

Lowered lower_cpu(const Segment& segment, CpuMode mode);

}  // namespace pinnace::cpu
