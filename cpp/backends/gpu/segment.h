// A segment lowered for one device: the steps that it takes there, and the nodes that this device cannot run or is not
// trusted with.
#pragma once

#include <set>

#include "backends/gpu/lowering.h"

namespace pinnace::gpu {

/// What the nodes of a segment become.
struct LoweredSegment {
  std::vector<DeviceTensor> tensors;
  std::vector<Step> steps;  ///< only those whose results are read
  std::vector<WeightRequest> weights;
  std::vector<const Node*> nodes;
  std::vector<std::string> kernels;       ///< per node of the segment
  std::vector<std::string> error_labels;  ///< labels of what kernels may report
  /// What the fill functions of `weights` look at, beside the segment's type inference.
  struct Operands {
    std::vector<const TensorType*> types, outputs;
    std::vector<const void*> data;
  };
  std::vector<Operands> operands;
  std::vector<std::shared_ptr<const Constant>> known;
};

/// Lowers in this storage type without the kernels `distrusted` where there are others.
Result<LoweredSegment> lower_segment(const Segment& segment, const DeviceCaps& caps, bool f16,
                                     const std::set<KernelId>& distrusted);

/// A segment as this device can run it.
struct FittedSegment {
  LoweredSegment lowered;
  bool f16 = false;
  std::vector<std::string> notices;  ///< per node
  std::vector<Verdict> verdicts;     ///< per node: refused by what the device lacks or failed at
  bool complete = true;              ///< no node is refused
};

/// Checks the kernels that the segment needs and goes around those that fail: in 32 bits, by other kernels, or by
/// refusing nodes. The errors of failed_self_checks, and of lowering.
Result<FittedSegment> fit_segment(const Segment& segment, const std::shared_ptr<Context>& context, bool f16);

}  // namespace pinnace::gpu
