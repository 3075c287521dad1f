// What the adaptive pools share: their shape, and the bins that outputs are computed from.
#pragma once

#include <array>

#include "ops/pool.h"

namespace pinnace {

/// Shape [N, C, wanted sizes...] of an adaptive pool over x [N, C, spatial...], input 0. The sizes are the attribute
/// output_size or, where there is one, the elements of input 1.
Result<Shape> adaptive_pool_shape(const NodeView& node);

/// Output o of a spatial dimension is computed from [floor(o * in / out), ceil((o + 1) * in / out)) of it. Missing
/// dimensions, before the others, have one element.
struct AdaptiveBins {
  struct Bin {
    int64_t begin, end;
  };
  std::array<int64_t, 3> from{1, 1, 1}, to{1, 1, 1};  ///< sizes in x and y
  int64_t in_size, out_size;                          ///< elements of one plane

  AdaptiveBins(const TensorView& x, const TensorView& y);

  Bin at(size_t d, int64_t o) const { return {o * from[d] / to[d], ((o + 1) * from[d] + to[d] - 1) / to[d]}; }
  /// About how long one plane takes.
  double nanoseconds() const { return 3 * static_cast<double>(in_size + out_size); }

  /// Calls f(z, y, x) with the bins of each output, in row-major order.
  template <class F>
  void for_each(F f) const {
    for (int64_t oz = 0; oz < to[0]; ++oz) {
      for (int64_t oy = 0; oy < to[1]; ++oy) {
        for (int64_t ox = 0; ox < to[2]; ++ox) f(at(0, oz), at(1, oy), at(2, ox));
      }
    }
  }
  /// Calls f(i) for each element of x in these bins; i counts elements of the plane, ascending.
  template <class F>
  void for_each_element(const Bin& bz, const Bin& by, const Bin& bx, F f) const {
    for (int64_t z = bz.begin; z < bz.end; ++z) {
      for (int64_t y = by.begin; y < by.end; ++y) {
        const int64_t row = (z * from[1] + y) * from[2];
        for (int64_t i = row + bx.begin; i < row + bx.end; ++i) f(i);
      }
    }
  }
};

}  // namespace pinnace
