// What resizes of floats and of int8 share: where the places of rows and columns come from.
#pragma once

#include "backends/gpu/lowering.h"
#include "ops/resize_map.h"

namespace pinnace::gpu {

struct ResizeTap {
  int32_t index;
  double weight;
};
/// `count` taps for every place of an axis.
struct ResizeTapList {
  int64_t count = 1;
  std::vector<ResizeTap> all;
};

/// A resize of [N, C, H, W] in rows and columns.
struct ImageResize {
  ResizeSpec spec;
  std::array<ResizeTapList, 2> taps;  ///< of rows, of columns
  int64_t planes = 0;                 ///< of four channels
  bool rows_first = true;             ///< the reference sums along the rows' axis first, or along one only
};
/// Refuses what kernels of images do not resize.
Status describe_resize(NodeLowering& n, ImageResize& to);

}  // namespace pinnace::gpu
