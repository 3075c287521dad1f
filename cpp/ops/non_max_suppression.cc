// non_max_suppression: per image and class, boxes in order of falling score, without those that overlap a chosen one.
//   boxes             [N, B, 4]  f32: y1, x1, y2, x2, any two opposite corners
//   scores            [N, classes, B]  f32
//   max_output_boxes  [] or [1]  i64, optional, default 0: the most boxes per image and class; 0 or less: none
//   iou_threshold     [] or [1]  f32 in [0, 1], optional, default 0: boxes whose overlap exceeds it are left out
//   score_threshold   [] or [1]  f32, optional: boxes must score more; left out: all
//   center_point_box  int, default 0; 1: boxes are x centre, y centre, width, height
//   ordered_corners   int, default 0; 1: corners are as they are, and a box overlaps none unless its second corner has
//                     the larger numbers
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
Box corners(const float* b, bool center, bool ordered) {
  if (ordered) return {b[0], b[1], b[2], b[3]};
  if (center) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}
float area(const Box& box) {
  return (box.bottom - box.top) * (box.right - box.left);
}

/// The boxes that were chosen, side by side, so that a candidate is held against kTogether of them at once.
class Chosen {
 public:
  static constexpr int64_t kTogether = 16;
  /// Room for `most` boxes.
  static Result<Chosen> allocate(int64_t most, const std::string& label) {
    const int64_t room = (most + kTogether - 1) / kTogether * kTogether;
    PINNACE_ASSIGN(Scratch<float> numbers, Scratch<float>::allocate(5 * room, label));
    return Chosen(std::move(numbers), room);
  }
  void clear() { count_ = 0; }
  int64_t count() const { return count_; }
  void add(const Box& box) {
    float* at = numbers_.data() + count_;
    if (count_ % kTogether == 0) {  // boxes without area overlap nothing
      for (int64_t part = 0; part < 5; ++part) std::fill_n(at + part * room_, kTogether, 0.0f);
    }
    const float parts[5] = {box.top, box.left, box.bottom, box.right, area(box)};
    for (int64_t part = 0; part < 5; ++part) at[part * room_] = parts[part];
    ++count_;
  }
  /// Whether the box overlaps one of them by more than the threshold.
  bool overlaps(const Box& box, float threshold) const {
    const float own = area(box);
    for (int64_t first = 0; first < count_; first += kTogether) {
      const float* top = numbers_.data() + first;
      const float *left = top + room_, *bottom = left + room_, *right = bottom + room_, *areas = right + room_;
      int any = 0;
      for (int64_t i = 0; i < kTogether; ++i) {
        const float height = std::min(box.bottom, bottom[i]) - std::max(box.top, top[i]);
        const float width = std::min(box.right, right[i]) - std::max(box.left, left[i]);
        const float both = height * width, all = own + areas[i] - both;
        any |= int{height > 0} & int{width > 0} & int{own > 0} & int{areas[i] > 0} & int{all > 0} &
               int{both / all > threshold};
      }
      if (any) return true;
    }
    return false;
  }

 private:
  Chosen(Scratch<float> numbers, int64_t room) : numbers_(std::move(numbers)), room_(room) {}
  Scratch<float> numbers_;
  int64_t room_, count_ = 0;
};

struct Candidate {
  float score;
  int64_t box;
};
/// Later in the order that boxes are looked at: a heap by this has the best one in front.
bool later(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score < b.score : a.box > b.box;
}
bool earlier(const Candidate& a, const Candidate& b) {
  return later(b, a);
}
/// A heap, of which few are taken as a rule, is made of at most so many without a look at whether the call is to end.
constexpr int64_t kMostHeaped = 1 << 20;

/// Calls f(image, class, box) for each selected box in order.
template <class F>
Status select(const NodeView& node, const Shape& scores_shape, const float* boxes, const float* scores,
              const Limits& limits, F f) {
  const int64_t images = scores_shape[0].size, classes = scores_shape[1].size, count = scores_shape[2].size;
  if (count == 0) return {};  // however many classes there are
  const bool center = node.attr_int("center_point_box") != 0, ordered = node.attr_int("ordered_corners") != 0;
  PINNACE_ASSIGN(auto candidates, Scratch<Candidate>::allocate(count, node.label()));
  PINNACE_ASSIGN(Chosen chosen, Chosen::allocate(std::min(count, limits.most), node.label()));
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t c = 0; c < classes; ++c) {
      const float* score = scores + (n * classes + c) * count;
      Candidate* const first = candidates.data();
      Candidate* last = first;
      for (int64_t i = 0; i < count; ++i) {
        if (limits.score ? score[i] > *limits.score : score[i] == score[i]) *last++ = {score[i], i};
      }
      const bool heaped = last - first <= kMostHeaped;
      if (heaped) {
        std::make_heap(first, last, later);
      } else {
        sort_all(first, last, earlier);
      }
      if (stopped()) return stop_status(node.label());
      chosen.clear();
      int64_t looked_at = 0;
      for (Candidate* next = first; next < last && chosen.count() < limits.most; ++looked_at) {
        if (looked_at % 32 == 31 && stopped()) return stop_status(node.label());
        if (heaped) std::pop_heap(first, last, later);
        const int64_t at = heaped ? (--last)->box : (next++)->box;
        const Box box = corners(boxes + (n * count + at) * 4, center, ordered);
        if (chosen.overlaps(box, limits.iou)) continue;
        chosen.add(box);
        f(n, c, at);
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
  if (node.attr_int("center_point_box") && node.attr_int("ordered_corners")) {
    return node.error("boxes by their centres have no ordered_corners");
  }
  if (boxes.rank() != 3 || scores.rank() != 3 || !dim_merge(boxes.shape[0], scores.shape[0]) ||
      !dim_merge(boxes.shape[1], scores.shape[2]) || !dim_merge(boxes.shape[2], 4)) {
    return node.error("boxes and scores must be [N,B,4] and [N,classes,B], are ", boxes, " and ", scores);
  }
  bool all_known = node.input_data(kBoxes) && node.input_data(kScores) && boxes.concrete() && scores.concrete();
  const void* data[5] = {};
  for (int i = kMost; i <= kScore; ++i) {
    if (!node.has_input(i)) continue;
    PINNACE_TRY(check_one_number(node, i));
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
    .attrs = {int_attr("center_point_box", 0), int_attr("ordered_corners", 0)},
    .type = non_max_suppression_type,
    .reference = non_max_suppression_reference,
    .traits = Trait::kRunsToCount,
    .work = Work::kSquared,
};
}  // namespace pinnace
