// Places at which roi_align samples, for its reference code and its kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ops/op.h"

namespace pinnace {

/// Of a bin and direction.
inline constexpr int64_t kMostRoiSamples = 65536;

/// Samples per bin from top to bottom, or across; 0: as many as the bin needs.
inline int64_t roi_sampling_ratio(const NodeView& node, bool across) {
  const int64_t ratio = node.attr_int("sampling_ratio"), width = node.attr_int("sampling_ratio_width");
  return across && width != -1 ? width : ratio;
}

/// Two neighbours of a place along one dimension. outside: it is beyond the edge, and the sample is 0.
struct RoiNeighbours {
  bool outside = true;
  int64_t low = 0, high = 0;
  double weight_low = 0, weight_high = 0;
};
/// edge: places beyond the edge take it.
template <class F>
RoiNeighbours roi_neighbours(F place, int64_t size, bool edge) {
  if (size == 0) return {};
  const auto most = static_cast<F>(size);
  if (edge) place = std::min(place, most);
  if (!(place >= -1 && place <= most) && !edge) return {};
  place = std::max(place, F(0));
  const auto low = std::min(static_cast<int64_t>(place), size - 1);
  if (low == size - 1) return {false, low, low, 1, 0};
  const double above = static_cast<double>(place) - static_cast<double>(low);
  return {false, low, low + 1, 1 - above, above};
}

/// Start of a box along one direction, size of a bin, and samples per bin. F: float, of double elements double.
template <class F>
struct RoiExtent {
  F start, bin;
  int64_t samples;

  F place(int64_t of_bin, int64_t sample) const {
    return start + static_cast<F>(of_bin) * bin + (static_cast<F>(sample) + F(0.5)) * bin / static_cast<F>(samples);
  }
};
/// The error says why the box, by its number, has none.
template <class F>
Result<RoiExtent<F>> roi_extent(const NodeView& node, F first, F last, int64_t bins, int64_t ratio, int64_t box) {
  const auto scale = static_cast<F>(node.attr_float("spatial_scale"));
  const bool half = node.attr_string("coordinate_transformation_mode") == "half_pixel";
  const F start = first * scale - (half ? F(0.5) : F(0)), end = last * scale - (half ? F(0.5) : F(0));
  const F size = half ? end - start : std::max(end - start, F(1));
  if (!std::isfinite(size) || !std::isfinite(start))
    return node.error("box ", box, " from ", first, " to ", last, " is not finite");
  RoiExtent<F> e{start, size / static_cast<F>(bins), ratio};
  if (e.samples == 0) {
    const F samples = std::ceil(e.bin);
    if (samples > static_cast<F>(kMostRoiSamples)) {
      return node.error("box ", box, " from ", first, " to ", last, " needs ", samples, " samples per bin, ",
                        kMostRoiSamples, " are the most");
    }
    e.samples = samples > 0 ? static_cast<int64_t>(samples) : 0;
  }
  return e;
}

}  // namespace pinnace
