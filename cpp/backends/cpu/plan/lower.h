// From a segment's nodes to what the CPU runs: which kernel, in which layout each value is kept, where layouts change,
// and which nodes another one does along with its own work (fusion.h). The graph does not know of any of it.
#pragma once

#include <deque>
#include <span>
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
  FusionOf<ValueId> fusion;       ///< work of other nodes
  DType stored_as = DType::kF32;  ///< KernelNode::stored_as()

  /// A value that the step reads.
  struct Read {
    ValueId id;
    bool packed;  ///< a constant that the kernel packs, if it packs at all
  };
  /// All of them: inputs that are there, then operands of the fused work.
  std::vector<Read> reads() const;
};

struct Lowered {
  std::vector<LoweredNode> nodes;
  std::vector<TensorType> types;  ///< the graph's values, then those that only the CPU has
  std::vector<ConstantPtr> data;  ///< known contents, or null
  std::vector<Layout> layouts;    ///< NHWC-packed where the value is; all outputs are dense
  std::vector<ValueId> outputs;   ///< of the segment, in its order
  std::vector<int32_t> node_of;   ///< for each node of the segment: which of `nodes` computes it
  std::deque<Node> copies;        ///< nodes whose operands or activation differ from the graph's node
};

/// stored_as: for each node of the graph, KernelNode::stored_as(); empty: f32 for all.
Lowered lower_cpu(const Segment& segment, CpuMode mode, std::span<const DType> stored_as);

}  // namespace pinnace::cpu
