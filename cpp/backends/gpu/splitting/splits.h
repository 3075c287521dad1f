// Ways to split a dispatch: for each kernel that reads and writes windows of its tensors, along which dimensions. The
// family's split.cc knows this; a kernel with run_whole in its line of kernels.inc runs whole or not at all.
#pragma once

#include <functional>
#include <optional>

#include "backends/gpu/lowering.h"

namespace pinnace::gpu {

/// Elements of a tensor that do not lie together. A copy of them is dense, in the order of their dimensions.
struct StridedRegion {
  int64_t from = 0;                                         ///< bytes from the tensor's beginning
  int64_t bytes = 4;                                        ///< of an element
  std::array<int64_t, 6> size{1, 1, 1, 1, 1, 1}, stride{};  ///< strides in bytes
  int64_t count() const {
    int64_t all = 1;
    for (const int64_t n : size) all *= n;
    return all;
  }
};

/// How a sub-dispatch sees a binding.
struct BindingView {
  bool own = false;                       ///< a result: the sub-dispatch writes every byte of its window
  std::optional<StridedRegion> region{};  ///< its window is a copy of this, whatever the offset
};

/// A step that makes some of the units of another; windows have the bytes that they need and no more.
struct SubDispatch : Step {
  std::vector<BindingView> views;  ///< one per binding
};

/// A step falls into `units` along one of its dimensions. `take` turns a copy of it into the step that makes units
/// [first, first + count) alone: windows, push constants and groups. The results are the same, to the bit, since every
/// element is computed as before.
struct Split {
  int64_t units;
  std::function<void(SubDispatch& part, int64_t first, int64_t count)> take;
  bool copies = false;  ///< sub-dispatches work on copies of strided regions
};

/// The outermost dimension first. The step has windows, one per binding.
std::vector<Split> splits_of(const Step& step);

}  // namespace pinnace::gpu
