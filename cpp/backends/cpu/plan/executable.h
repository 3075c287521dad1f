// A compiled CPU segment: a list of calls in order, as lower_cpu() made them. Inner values live in the workspace at
// offsets planned from their lifetimes; views and in-place operators share the bytes of their input. compile.cc makes
// it.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/cast/half_f32.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/plan/lower.h"
#include "backends/cpu/plan/precision.h"
#include "backends/cpu/plan/row_tiled_fusion.h"

namespace pinnace::cpu {

/// Where the bytes of a value are during a run.
struct Place {
  enum class Kind : uint8_t { kNone, kInput, kOutput, kConstant, kWorkspace } kind = Kind::kNone;
  int32_t index = 0;                ///< of the segment's inputs or outputs
  size_t offset = 0;                ///< in the workspace
  const std::byte* data = nullptr;  ///< of a constant
};

struct Operand {
  const TensorType* type = nullptr;  ///< null: left out
  Place place;
};
/// Of fused work.
struct FusedOperand {
  Operand operand;
  Layout layout;
};

/// One step, ready to run.
struct Call {
  LoweredNode::Kind kind;
  const Node* node;    ///< null for a change of layout
  const Node* source;  ///< what it is timed as; null at the end of a segment
  const OpDef* op;
  const CpuKernelLine* line;    ///< null: reference code
  std::vector<Layout> layouts;  ///< of inputs, then outputs
  std::vector<Operand> inputs, outputs;
  FusionOf<FusedOperand> fusion;
  std::vector<const TensorType*> types;     ///< of inputs, for NodeView
  std::vector<const TensorType*> declared;  ///< of outputs
  std::vector<const void*> constants;       ///< known contents of inputs
  const std::byte* packed = nullptr;
  Buffer plan;               ///< CpuKernel::plan
  bool packed_here = false;  ///< and could have been in the file
  size_t scratch_offset = 0;
  int scratch_threads = 1;
  bool nothing_to_do = false;     ///< a view whose bytes are in place already, or outputs without elements
  int32_t fused_run = -1;         ///< index of the fused run that it belongs to
  DType stored_as = DType::kF32;  ///< f16, bf16: float32 results are rounded to that
};

class CpuExecutable final : public Executable {
 public:
  size_t workspace_bytes() const override { return workspace_bytes_; }
  std::string_view kernel(size_t i) const override;
  std::string notice(size_t i) const override;
  Status run(const RunContext& context, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs) const override;

 private:
  friend class Compilation;
  /// An output whose bytes end up elsewhere: an input or constant passed through, the same value twice.
  struct Copy {
    Operand from;
    int32_t output;
  };
  /// The calls of a fused run, on as many threads as there are tasks.
  void run_fused_calls(const FusedRun& fused_run, const RunContext& context, std::span<const TensorView> inputs,
                       std::span<const TensorView> outputs) const;

  std::optional<LegalizedSegment> legalized_;  // whose nodes lowered_ has
  Lowered lowered_;                            // Operands point to its types
  const HalfF32Kernels* half_ = nullptr;
  bool shape_invariant_ = false;
  std::vector<Call> calls_;
  std::vector<FusedRun> fused_runs_;
  std::vector<std::string> fused_run_names_;
  std::vector<Copy> copies_;
  std::vector<ConstantPtr> constants_;            // keeps computed contents alive
  std::set<std::shared_ptr<const void>> tables_;  // and what is packed for these sizes alone
  std::string notice_;
  size_t workspace_bytes_ = 0;
  size_t views_offset_ = 0;
};

/// Chooses kernels, packs constants and places inner values in the workspace. kOutOfMemory; kCorruptFile for constants
/// that are damaged; kUnsupported where a payload is required and the file has none.
Result<std::unique_ptr<Executable>> compile_cpu(const Segment& segment, CpuMode mode);

}  // namespace pinnace::cpu
