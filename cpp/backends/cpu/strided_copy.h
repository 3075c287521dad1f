// Copies between strided arrays of any element type, by element size: what transpose, slice, expand, concat and split
// come down to. No allocation; work is split over the run's threads.
#pragma once

#include "backends/cpu/kernel.h"

namespace pinnace {

/// Nested loops, innermost first: element (i0, i1, ...) of `to` at sum(i * to_step) is that of `from` at sum(i *
/// from_step). Steps are in elements and may be 0 or negative (from_step).
struct CopyLoops {
  static constexpr int kMost = 8;
  int rank = 0;
  int64_t size[kMost], from_step[kMost], to_step[kMost];

  /// Adds the next outer loop; one that goes on where the last ends is merged with it, one of size 1 is nothing. False
  /// if there are too many.
  bool add(int64_t n, int64_t from, int64_t to) {
    if (n == 1) return true;
    if (rank > 0 && from == from_step[rank - 1] * size[rank - 1] && to == to_step[rank - 1] * size[rank - 1]) {
      size[rank - 1] *= n;
      return true;
    }
    if (rank == kMost) return false;
    size[rank] = n;
    from_step[rank] = from;
    to_step[rank++] = to;
    return true;
  }
};

/// Elements of 1, 2, 4 or 8 bytes. from and to point at index 0 of every loop and do not overlap.
void strided_copy(const KernelContext& context, const CopyLoops& loops, const std::byte* from, std::byte* to,
                  size_t bytes);

/// to[j * to_row + i] = from[i * from_row + j] for i in [0, rows), j in [0, columns).
void transpose_floats(const float* from, ptrdiff_t from_row, float* to, ptrdiff_t to_row, int64_t rows,
                      int64_t columns);

}  // namespace pinnace
