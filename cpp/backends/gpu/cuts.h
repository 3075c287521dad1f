// Ways to divide a dispatch: for each kernel that reads and writes windows of its tensors, along what it can be cut.
// The one place that knows this; a kernel that has no line in cuts.cc runs whole or not at all.
#pragma once

#include <functional>

#include "backends/gpu/lowering.h"

namespace pinnace::gpu {

/// A step falls into `units` along one of its dimensions. `take` turns a copy of it into the step that makes units
/// [first, first + count) alone: windows, push constants and groups. The results are the same, to the bit, since every
/// element is computed as before.
struct Cut {
  int64_t units;
  std::function<void(Step& part, int64_t first, int64_t count)> take;
};

/// The outermost dimension first. The step has windows, one per binding.
std::vector<Cut> cuts_of(const Step& step);

}  // namespace pinnace::gpu
