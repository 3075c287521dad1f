// Boxes by their corners, as the operators of detectors see them: how much two overlap, and what a network's deltas
// make of one. All in float32.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/cancel.h"
#include "ops/move.h"

namespace pinnace {

struct Box {
  float x1, y1, x2, y2;

  float width() const { return x2 - x1; }
  float height() const { return y2 - y1; }
  /// False if corners are in the wrong order or NaN.
  bool ordered() const { return x1 <= x2 && y1 <= y2; }
};
inline Box load_box(const float* b) {
  return {b[0], b[1], b[2], b[3]};
}
inline void store_box(const Box& box, float* to) {
  to[0] = box.x1;
  to[1] = box.y1;
  to[2] = box.x2;
  to[3] = box.y2;
}

/// Intersection over union; NaN for two boxes without area.
inline float overlap(const Box& a, const Box& b) {
  const float width = std::max(std::min(a.x2, b.x2) - std::max(a.x1, b.x1), 0.0f);
  const float height = std::max(std::min(a.y2, b.y2) - std::max(a.y1, b.y1), 0.0f);
  const float both = width * height;
  return both / (a.width() * a.height() + b.width() * b.height() - both);
}

/// `box` with its centre moved by d[0] widths and d[1] heights, e^d[2] times as wide and e^d[3] times as high, and cut
/// to [0, image[1]] and [0, image[0]]; image: height, width. NaN stay.
inline Box transformed(const Box& box, const float* d, const float* image) {
  const float width = box.width(), height = box.height();
  const float x = (box.x1 + box.x2) / 2 + d[0] * width, y = (box.y1 + box.y2) / 2 + d[1] * height;
  const float half_width = std::exp(d[2]) * width / 2, half_height = std::exp(d[3]) * height / 2;
  const auto cut = [](float at, float size) { return std::min(std::max(at, 0.0f), size); };
  return {cut(x - half_width, image[1]), cut(y - half_height, image[0]), cut(x + half_width, image[1]),
          cut(y + half_height, image[0])};
}

/// Greedy suppression: calls take(i) for boxes of `order`, best first, that overlap no taken one by `threshold` or
/// more, until `most` are taken. `taken` has room for as many as can be taken. False: the call is to end.
template <class Take>
bool suppress(const Box* boxes, std::span<const int64_t> order, float threshold, int64_t most, Box* taken, Take take) {
  int64_t count = 0, looked_at = 0;
  for (const int64_t i : order) {
    if (count >= most) break;
    if (looked_at++ % 32 == 0 && stopped()) return false;
    bool covered = false;
    for (int64_t k = 0; k < count && !covered; ++k) covered = overlap(boxes[i], taken[k]) >= threshold;
    if (covered) continue;
    taken[count++] = boxes[i];
    take(i);
  }
  return true;
}

/// Loops over boxes look once for so many whether the call is to end.
inline constexpr int64_t kBoxesBetweenLooks = 4096;

/// Shape rules: dimension d of input i is `size`, as far as it is known.
inline bool has_size(const NodeView& node, int i, size_t d, const Dim& size) {
  return dim_merge(node.input(i).shape[d], size).has_value();
}

}  // namespace pinnace
