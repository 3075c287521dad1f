// Where affine_grid finds the elements of an image, which its reference and the pass lower_affine_grid share.
#pragma once

#include <cstdint>

namespace pinnace {

/// The place in [-1, 1] of the centre of element i of `size`. align: -1 and 1 are the centres of the outermost
/// elements, and a single one is at 0; otherwise their outer edges.
inline double affine_grid_place(int64_t i, int64_t size, bool align) {
  if (!align) return static_cast<double>(2 * i + 1) / static_cast<double>(size) - 1;
  return size > 1 ? static_cast<double>(2 * i) / static_cast<double>(size - 1) - 1 : 0.0;
}

}  // namespace pinnace
