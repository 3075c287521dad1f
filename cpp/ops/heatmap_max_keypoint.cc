// heatmap_max_keypoint: where in its box each keypoint is, from heat maps of boxes, finer than their elements.
//   heatmap  [R, K, S, S]  f32, S >= 2: a map for each box and keypoint
//   boxes    [R, 4]  f32: x1, y1, x2, y2
//   tolerance  float, default 1e-5: below it a maximum counts as flat
//   scores     [R, K]  f32: the height of the maximum
//   keypoints  [R, K, 2]  f32: x, y
// The largest element (the first in row-major order, NaN passed over) and its eight neighbours, mirrored at the edge,
// give a paraboloid, whose maximum is taken unless it is flat: a step of at most 1.5 elements. Places are of the
// middles of elements. Differences are computed in float32. Source: NNAPI HEATMAP_MAX_KEYPOINT.
#include <algorithm>
#include <cmath>

#include "ops/move.h"

namespace pinnace {
namespace {
struct Peak {
  float x, y, score;  ///< x and y: steps from the largest element
};

/// The maximum of the paraboloid through the middle of a 3 x 3 grid.
Peak refine(const float (&g)[3][3], float tolerance) {
  const float bx = -(g[1][2] - g[1][0]) / 2, by = -(g[2][1] - g[0][1]) / 2;
  const float xx = g[1][0] - 2 * g[1][1] + g[1][2], yy = g[0][1] - 2 * g[1][1] + g[2][1];
  const float xy = (g[2][2] - g[2][0] - g[0][2] + g[0][0]) / 4;
  const float determinant = xx * yy - xy * xy;
  if (std::abs(determinant) < tolerance + tolerance * xx * yy) return {0, 0, g[1][1]};
  float x = (yy * bx - xy * by) / determinant, y = (xx * by - xy * bx) / determinant;
  if (const float longest = std::max(std::abs(x), std::abs(y)); longest > 1.5f) {
    x = x / longest * 1.5f;
    y = y / longest * 1.5f;
  }
  return {x, y, g[1][1] - bx * x - by * y + ((xx * x + xy * y) * x + (xy * x + yy * y) * y) / 2};
}

int64_t largest_place(const float* map, int64_t count) {
  int64_t at = 0;
  for (int64_t i = 1; i < count; ++i) {
    if (map[i] > map[at] || map[at] != map[at]) at = i;
  }
  return at;
}

Peak find_peak(const float* map, int64_t size, int64_t at, float tolerance) {
  float grid[3][3];
  const auto mirrored = [size](int64_t i) { return i < 0 ? 1 : i == size ? size - 2 : i; };
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t c = 0; c < 3; ++c) {
      grid[r][c] = map[mirrored(at / size + r - 1) * size + mirrored(at % size + c - 1)];
    }
  }
  return refine(grid, tolerance);
}

Status heatmap_max_keypoint_types(const NodeView& node, std::span<TensorType> outputs) {
  const TensorType &maps = node.input(0), &boxes = node.input(1);
  if (maps.rank() != 4 || boxes.rank() != 2 || !dim_merge(boxes.shape[1], 4) ||
      !dim_merge(maps.shape[0], boxes.shape[0]) || !dim_merge(maps.shape[2], maps.shape[3])) {
    return node.error("heatmap and boxes must be [R,K,S,S] and [R,4], are ", maps, " and ", boxes);
  }
  for (const size_t d : {size_t{2}, size_t{3}}) {
    if (maps.shape[d].known() && maps.shape[d].size < 2) return node.error("maps of ", maps, " have no neighbours");
  }
  const Dim count = *dim_merge(maps.shape[0], boxes.shape[0]);
  outputs[0] = {DType::kF32, {count, maps.shape[1]}, nullptr};
  outputs[1] = {DType::kF32, {count, maps.shape[1], 2}, nullptr};
  return {};
}

Status heatmap_max_keypoint_reference(const NodeView& node, std::span<const TensorView> in,
                                      std::span<const TensorView> out) {
  const int64_t keypoints = in[0].dim(1), size = in[0].dim(2);
  const auto tolerance = static_cast<float>(node.attr_float("tolerance"));
  const double cost = 50 + static_cast<double>(size * size);
  node.threads().ranges(in[0].dim(0) * keypoints, cost, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const float* map = in[0].data<float>() + i * size * size;
      const float* box = in[1].data<float>() + i / keypoints * 4;
      const int64_t at = largest_place(map, size * size);
      const Peak peak = find_peak(map, size, at, tolerance);
      const auto place = [&](int64_t element, float step, float start, float end) {
        return (static_cast<float>(element) + step + 0.5f) / static_cast<float>(size) * (end - start) + start;
      };
      out[0].data<float>()[i] = peak.score;
      out[1].data<float>()[2 * i] = place(at % size, peak.x, box[0], box[2]);
      out[1].data<float>()[2 * i + 1] = place(at / size, peak.y, box[1], box[3]);
    }
  });
  return {};
}
}  // namespace

PINNACE_OP(heatmap_max_keypoint){
    .name = "heatmap_max_keypoint",
    .inputs = {{"heatmap", kF32}, {"boxes", kF32}},
    .attrs = {float_attr("tolerance", 1e-5)},
    .min_outputs = 2,
    .max_outputs = 2,
    .types = heatmap_max_keypoint_types,
    .reference = heatmap_max_keypoint_reference,
    .work = Work::kSquared,
};
}  // namespace pinnace
