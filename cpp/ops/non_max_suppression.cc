// non_max_suppression: per image and class, boxes in order of falling score, without those that overlap a chosen one.
//   boxes             [N, B, 4]  f32: y1, x1, y2, x2, any two opposite corners
//   scores            [N, classes, B]  f32
//   max_output_boxes  [] or [1]  i64, optional, default 0: the most boxes per image and class; 0 or less: none
//   iou_threshold     [] or [1]  f32 in [0, 1], optional, default 0: boxes whose overlap exceeds it are left out
//   score_threshold   [] or [1]  f32, optional: boxes must score more; left out: all
//   center_point_box  int, default 0; 1: boxes are x centre, y centre, width, height
//   y                 [selected, 3]  i64: image, class, box; in order of image, class and falling score
// Overlap is the intersection's area over the union's, in float32. Equal scores keep the order of boxes; NaN scores are
// left out. The count depends on data; bound: N * classes * min(B, max_output_boxes).
// Source: ONNX NonMaxSuppression, opset 11.
#include <algorithm>

#include "base/sort.h"
#include "ops/move.h"

namespace pinnace {
namespace {
enum Input { kBoxes, kScores, kMost, kIou, kScore };

struct Limits {
  int64_t most = 0;
  float iou = 0;
  std::optional<float> score;
};

Result<Limits> limits_from(const NodeView& node, const void* most, const void* iou, const void* score) {
  Limits l;
  if (most) l.most = std::max<int64_t>(*static_cast<const int64_t*>(most), 0);
  if (iou) l.iou = *static_cast<const float*>(iou);
  if (score) l.score = *static_cast<const float*>(score);
  if (!(l.iou >= 0 && l.iou <= 1)) return node.error("iou_threshold ", l.iou, " is outside [0,1]");
  return l;
}

struct Box {
  float top, left, bottom, right;
};
Box corners(const float* b, bool center) {
  if (center) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}
bool overlaps(const Box& a, const Box& b, float threshold) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0 && width > 0)) return false;
  const float both = height * width;
  const float area_a = (a.bottom - a.top) * (a.right - a.left), area_b = (b.bottom - b.top) * (b.right - b.left);
  const float all = area_a + area_b - both;
  return area_a > 0 && area_b > 0 && all > 0 && both / all > threshold;
}

/// Calls f(image, class, box) for each selected box in order.
template <class F>
Status select(const NodeView& node, const Shape& scores_shape, const float* boxes, const float* scores,
              const Limits& limits, F f) {
  const int64_t images = scores_shape[0].size, classes = scores_shape[1].size, count = scores_shape[2].size;
  if (count == 0) return {};  // however many classes there are
  const bool center = node.attr_int("center_point_box") != 0;
  PINNACE_ASSIGN(auto order, Scratch<int64_t>::allocate(count, node.label()));
  PINNACE_ASSIGN(auto chosen, Scratch<Box>::allocate(count, node.label()));
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t c = 0; c < classes; ++c) {
      const float* score = scores + (n * classes + c) * count;
      int64_t candidates = 0;
      for (int64_t i = 0; i < count; ++i) {
        if (limits.score ? score[i] > *limits.score : score[i] == score[i]) order[candidates++] = i;
      }
      sort_all(order.data(), order.data() + candidates,
               [score](int64_t a, int64_t b) { return score[a] != score[b] ? score[a] > score[b] : a < b; });
      if (stopped()) return stop_status(node.label());
      int64_t taken = 0;
      for (int64_t i = 0; i < candidates && taken < limits.most; ++i) {
        if (i % 32 == 31 && stopped()) return stop_status(node.label());
        const Box box = corners(boxes + (n * count + order[i]) * 4, center);
        const bool suppressed = std::any_of(chosen.data(), chosen.data() + taken,
                                            [&](const Box& other) { return overlaps(box, other, limits.iou); });
        if (suppressed) continue;
        chosen[taken++] = box;
        f(n, c, order[i]);
      }
    }
  }
  return {};
}

Result<TensorType> non_max_suppression_type(const NodeView& node) {
  const TensorType &boxes = node.input(kBoxes), &scores = node.input(kScores);
  if (node.attr_int("center_point_box") != 0 && node.attr_int("center_point_box") != 1) {
    return node.error("center_point_box ", node.attr_int("center_point_box"), " is neither 0 nor 1");
  }
  if (boxes.rank() != 3 || scores.rank() != 3 || !dim_merge(boxes.shape[0], scores.shape[0]) ||
      !dim_merge(boxes.shape[1], scores.shape[2]) || !dim_merge(boxes.shape[2], 4)) {
    return node.error("boxes and scores must be [N,B,4] and [N,classes,B], are ", boxes, " and ", scores);
  }
  bool all_known = node.input_data(kBoxes) && node.input_data(kScores) && boxes.concrete() && scores.concrete();
  const void* data[5] = {};
  for (int i = kMost; i <= kScore; ++i) {
    if (!node.has_input(i)) continue;
    PINNACE_TRY(known_scalar(node, i).status());
    data[i] = node.input_data(i);
    all_known &= data[i] != nullptr;
  }
  TensorType y{DType::kI64, {Dim(), Dim(3)}, nullptr};
  PINNACE_ASSIGN(const Limits limits, limits_from(node, data[kMost], data[kIou], data[kScore]));
  if (all_known) {
    int64_t count = 0;
    PINNACE_TRY(select(node, scores.shape, static_cast<const float*>(node.input_data(kBoxes)),
                       static_cast<const float*>(node.input_data(kScores)), limits,
                       [&](int64_t, int64_t, int64_t) { ++count; }));
    y.shape[0] = count;
    return y;
  }
  Dim per_class = *dim_merge(boxes.shape[1], scores.shape[2]);
  if (!node.has_input(kMost) || data[kMost]) {
    const int64_t bound = dim_bound(per_class);
    per_class = bound < 0 ? limits.most : std::min(bound, limits.most);
  }
  y.shape[0] = dim_at_most(dim_mul(dim_mul(*dim_merge(boxes.shape[0], scores.shape[0]), scores.shape[1]), per_class));
  return y;
}

Status non_max_suppression_reference(const NodeView& node, std::span<const TensorView> in,
                                     std::span<const TensorView> out) {
  const auto data = [&](size_t i) { return i < in.size() && in[i].present() ? in[i].bytes : nullptr; };
  PINNACE_ASSIGN(const Limits limits, limits_from(node, data(kMost), data(kIou), data(kScore)));
  auto* to = out[0].data<int64_t>();
  return select(node, in[kScores].type->shape, in[kBoxes].data<float>(), in[kScores].data<float>(), limits,
                [&](int64_t n, int64_t c, int64_t box) {
                  *to++ = n;
                  *to++ = c;
                  *to++ = box;
                });
}
}  // namespace

PINNACE_OP(non_max_suppression){
    .name = "non_max_suppression",
    .inputs = {{"boxes", kF32},
               {"scores", kF32},
               {"max_output_boxes", kI64, 0, Arity::kOptional},
               {"iou_threshold", kF32, 0, Arity::kOptional},
               {"score_threshold", kF32, 0, Arity::kOptional}},
    .attrs = {int_attr("center_point_box", 0)},
    .type = non_max_suppression_type,
    .reference = non_max_suppression_reference,
    .traits = Trait::kRunsToCount,
    .work = Work::kSquared,
};
}  // namespace pinnace
