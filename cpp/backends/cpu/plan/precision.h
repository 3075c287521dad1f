// In which type a segment's float nodes compute. Models stored in half precision: nodes become float32 nodes, whose
// results are rounded to the type that they had, so every float32 kernel serves three types; where the processor
// computes with halves and there is a kernel for them, they stay. Float32 models in a session with precision fp16:
// where there is such a kernel, convolutions become f16 nodes, and so does what follows them.
#pragma once

#include <optional>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/kernel.h"

namespace pinnace::cpu {

/// A segment rewritten. Values keep their ids; a version of one in the other type is a new value behind them.
struct LegalizedSegment {
  Graph graph;  ///< values, and copies of the segment's nodes with casts between
  TypeInference type_inference;
  std::vector<int32_t> nodes;    ///< of `graph`, all of them
  std::vector<int32_t> node_of;  ///< for each node of the segment: the place in `nodes` of what computes it
  /// For each node of `graph`: f16 or bf16 if it computes in float32 what its operands' type rounds. Its results are
  /// rounded once, to that type, and its weights have 16 bits without loss. Else f32.
  std::vector<DType> stored_as;
};

/// Nothing if no node of the segment changes. Constants are converted: kOutOfMemory. Float32 weights of
/// convolutions that dequantize_linear makes of constants are constants too.
Result<std::optional<LegalizedSegment>> legalize_precision(const Segment& segment, CpuMode mode);

}  // namespace pinnace::cpu
