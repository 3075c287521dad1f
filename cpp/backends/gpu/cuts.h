// Ways to divide a dispatch: for each kernel that reads and writes windows of its tensors, along what it can be cut.
// The one place that knows this; a kernel that has no line in cuts.cc runs whole or not at all.
#pragma once

#include <functional>
#include <optional>

#include "backends/gpu/lowering.h"

namespace pinnace::gpu {

/// Elements of a tensor that do not lie together. A copy of them is dense, in the order of their dimensions.
struct Strip {
  int64_t from = 0;                                         ///< bytes from the tensor's beginning
  int64_t bytes = 4;                                        ///< of an element
  std::array<int64_t, 6> size{1, 1, 1, 1, 1, 1}, stride{};  ///< strides in bytes
  int64_t count() const {
    int64_t all = 1;
    for (const int64_t n : size) all *= n;
    return all;
  }
};

/// How a part sees a binding.
struct View {
  bool own = false;              ///< a result: the part writes every byte of its window
  std::optional<Strip> strip{};  ///< its window is a copy of this, whatever the offset
};

/// A step that makes some of the units of another; windows have the bytes that they need and no more.
struct Part : Step {
  std::vector<View> views;  ///< one per binding
};

/// A step falls into `units` along one of its dimensions. `take` turns a copy of it into the step that makes units
/// [first, first + count) alone: windows, push constants and groups. The results are the same, to the bit, since every
/// element is computed as before.
struct Cut {
  int64_t units;
  std::function<void(Part& part, int64_t first, int64_t count)> take;
  bool copies = false;  ///< parts have strips
};

/// The outermost dimension first. The step has windows, one per binding.
std::vector<Cut> cuts_of(const Step& step);

}  // namespace pinnace::gpu
