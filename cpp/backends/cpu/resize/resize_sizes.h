// Which resize nodes have kernels: along the last two dimensions, one after the other.
#pragma once

#include "backends/cpu/kernel.h"
#include "ops/resize_map.h"

namespace pinnace::cpu {

/// The last two dimensions; one that is not resized has in == out and no taps.
struct ResizeSizes {
  int64_t in[2] = {1, 1}, out[2] = {1, 1};
  bool resized[2] = {false, false};
};

/// The sizes, and the axes that are resized in the operator's order. False where another dimension is resized, or with
/// regions, which are known in a run only.
bool resize_sizes(const KernelNode& node, ResizeSizes* sizes, std::vector<ResizeAxis>* axes, ResizeSpec* spec);

/// True for nodes that resize_sizes() takes; for those of images.
bool resize_takes(const KernelNode& node);
bool resize_nhwc_takes(const KernelNode& node);

}  // namespace pinnace::cpu
