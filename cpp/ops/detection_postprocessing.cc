// detection_postprocessing: the best detections of a single-shot detector: boxes from anchors and deltas, those left
// out that overlap better ones, the rest sorted by score, as many rows per image whatever is found.
//   scores   [N, A, C]  f32; class 0 is the background and is left out
//   deltas   [N, A, L]  f32, L >= 4: dy, dx, dh, dw; what follows is not read
//   anchors  [A, 4]  f32: y centre, x centre, height, width
//   scale_y, scale_x, scale_h, scale_w  float, default 1: deltas are divided by these
//   regular             int, default 0; 1: classes are suppressed one by one, and the best of all are taken; 0: anchors
//   are
//                       suppressed by their best class, and each gives several of its classes
//   max_detections      int, required: D, the most boxes
//   max_classes_per_detection  int, default 1: M, classes that an anchor gives; regular = 0
//   max_detections_per_class   int, default 100; regular = 1
//   score_threshold     float, default 0: boxes must score more
//   iou_threshold       float, default 0.5: boxes that overlap a better one by this or more are left out
//   background_label    int, default 0: 1: the label of class c is c; 0: c - 1
//   kept_scores  [N, K]  f32, falling (regular = 0: within an anchor); K = D, or D * M with regular = 0
//   kept_boxes   [N, K, 4]  f32: y1, x1, y2, x2
//   labels       [N, K]  i32
//   counts       [N]  i32: rows that are found; the others are 0
// The centre of a box is moved by dy heights and dx widths of its anchor, its sizes are e^dh and e^dw times the
// anchor's. Of equal scores the first anchor comes first, then the first class. NaN scores are left out. Source: NNAPI
// DETECTION_POSTPROCESSING.
#include "base/sort.h"
#include "ops/box.h"

namespace pinnace {
namespace {
enum Input { kScores, kDeltas, kAnchors };

struct Settings {
  float scale[4];  ///< y, x, h, w
  bool regular;
  int64_t most, classes_per_anchor, per_class;
  float score, overlap;
  int64_t first_label;
  int64_t rows() const { return regular ? most : saturating_mul(most, classes_per_anchor); }
};

Result<Settings> settings_from(const NodeView& node) {
  Settings s{};
  constexpr const char* kScales[] = {"scale_y", "scale_x", "scale_h", "scale_w"};
  for (int i = 0; i < 4; ++i) {
    s.scale[i] = static_cast<float>(node.attr_float(kScales[i]));
    if (!(s.scale[i] > 0)) return node.error(kScales[i], " ", s.scale[i], " is not positive");
  }
  s.regular = node.attr_int("regular") != 0;
  s.most = node.attr_int("max_detections");
  s.classes_per_anchor = node.attr_int("max_classes_per_detection");
  s.per_class = node.attr_int("max_detections_per_class");
  if (s.most < 1) return node.error("max_detections ", s.most, " is not positive");
  if (!s.regular && s.classes_per_anchor < 1)
    return node.error("max_classes_per_detection ", s.classes_per_anchor, " is not positive");
  if (s.regular && s.per_class < 1) return node.error("max_detections_per_class ", s.per_class, " is not positive");
  s.score = static_cast<float>(node.attr_float("score_threshold"));
  s.overlap = static_cast<float>(node.attr_float("iou_threshold"));
  if (!(s.score >= 0)) return node.error("score_threshold ", s.score, " is negative or NaN");
  if (!(s.overlap >= 0)) return node.error("iou_threshold ", s.overlap, " is negative or NaN");
  s.first_label = node.attr_int("background_label") ? 0 : 1;
  return s;
}

/// x and y change places in Box: overlaps do not mind.
Box decode(const Settings& s, const float* anchor, const float* delta) {
  const float y = anchor[0] + anchor[2] * delta[0] / s.scale[0], x = anchor[1] + anchor[3] * delta[1] / s.scale[1];
  const float half_height = anchor[2] * std::exp(delta[2] / s.scale[2]) / 2;
  const float half_width = anchor[3] * std::exp(delta[3] / s.scale[3]) / 2;
  return {y - half_height, x - half_width, y + half_height, x + half_width};
}

struct Detection {
  int64_t anchor, category;
  float score;
};
bool before(const Detection& a, const Detection& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.anchor != b.anchor ? a.anchor < b.anchor : a.category < b.category;
}

/// Works on one image after the other, in memory of its own.
class Detector {
 public:
  static Result<Detector> create(const NodeView& node, const Settings& s, int64_t anchors, int64_t classes) {
    const auto what = node.label();
    const int64_t foreground = std::max<int64_t>(classes - 1, 0);
    const int64_t each = s.regular ? std::min(s.per_class, anchors) : 1;
    PINNACE_ASSIGN(auto boxes, Scratch<Box>::allocate(anchors, what));
    PINNACE_ASSIGN(auto taken, Scratch<Box>::allocate(anchors, what));
    PINNACE_ASSIGN(auto order, Scratch<int64_t>::allocate(anchors, what));
    PINNACE_ASSIGN(auto best, Scratch<float>::allocate(anchors, what));
    PINNACE_ASSIGN(auto found, Scratch<Detection>::allocate(saturating_mul(foreground, each), what));
    return Detector(s, anchors, classes, std::move(boxes), std::move(taken), std::move(order), std::move(best),
                    std::move(found));
  }

  /// Rows of one image; `scores`, `boxes` and `labels` have room for all and are 0. Returns how many are found, or -1
  /// where the call is to end.
  int64_t run(const float* all, float* scores, float* boxes, int32_t* labels) {
    const auto put = [&](int64_t row, const Detection& d) {
      scores[row] = d.score;
      store_box(boxes_[d.anchor], boxes + 4 * row);
      labels[row] = static_cast<int32_t>(d.category - s_.first_label);
    };
    return s_.regular ? regular(all, put) : fast(all, put);
  }
  Box* boxes() { return boxes_.data(); }

 private:
  Detector(const Settings& s, int64_t anchors, int64_t classes, Scratch<Box> boxes, Scratch<Box> taken,
           Scratch<int64_t> order, Scratch<float> best, Scratch<Detection> found)
      : s_(s),
        anchors_(anchors),
        classes_(classes),
        boxes_(std::move(boxes)),
        taken_(std::move(taken)),
        order_(std::move(order)),
        best_(std::move(best)),
        found_(std::move(found)) {}

  /// Anchors whose best_ exceeds the threshold, best first.
  std::span<const int64_t> candidates() {
    int64_t count = 0;
    for (int64_t a = 0; a < anchors_; ++a) {
      if (best_[a] > s_.score) order_[count++] = a;
    }
    sort_all(order_.data(), order_.data() + count,
             [this](int64_t a, int64_t b) { return best_[a] != best_[b] ? best_[a] > best_[b] : a < b; });
    return order_.span().first(static_cast<size_t>(count));
  }

  template <class Put>
  int64_t regular(const float* all, Put put) {
    int64_t count = 0;
    for (int64_t c = 1; c < classes_; ++c) {
      for (int64_t a = 0; a < anchors_; ++a) best_[a] = all[a * classes_ + c];
      const bool goes_on = suppress(boxes_.data(), candidates(), s_.overlap, s_.per_class, taken_.data(),
                                    [&](int64_t a) { found_[count++] = {a, c, best_[a]}; });
      if (!goes_on || stopped()) return -1;
    }
    const int64_t rows = std::min(count, s_.most);
    sort_first(found_.data(), found_.data() + rows, found_.data() + count, before);
    for (int64_t i = 0; i < rows; ++i) put(i, found_[i]);
    return rows;
  }

  template <class Put>
  int64_t fast(const float* all, Put put) {
    for (int64_t a = 0; a < anchors_; ++a) {
      if (a % kBoxesBetweenLooks == 0 && stopped()) return -1;
      best_[a] = -std::numeric_limits<float>::infinity();
      for (int64_t c = 1; c < classes_; ++c) {
        if (all[a * classes_ + c] > best_[a]) best_[a] = all[a * classes_ + c];
      }
    }
    int64_t row = 0;
    const bool goes_on = suppress(boxes_.data(), candidates(), s_.overlap, s_.most, taken_.data(), [&](int64_t a) {
      int64_t count = 0;
      for (int64_t c = 1; c < classes_; ++c) {
        const float score = all[a * classes_ + c];
        if (score == score) found_[count++] = {a, c, score};
      }
      const int64_t each = std::min(count, s_.classes_per_anchor);
      sort_first(found_.data(), found_.data() + each, found_.data() + count, before);
      for (int64_t i = 0; i < each; ++i) put(row++, found_[i]);
    });
    return goes_on ? row : -1;
  }

  Settings s_;
  int64_t anchors_, classes_;
  Scratch<Box> boxes_, taken_;
  Scratch<int64_t> order_;
  Scratch<float> best_;  ///< per anchor: the score by which it is sorted
  Scratch<Detection> found_;
};

Status detection_postprocessing_types(const NodeView& node, std::span<TensorType> outputs) {
  PINNACE_ASSIGN(const Settings s, settings_from(node));
  const TensorType &scores = node.input(kScores), &deltas = node.input(kDeltas), &anchors = node.input(kAnchors);
  const bool ranks = scores.rank() == 3 && deltas.rank() == 3 && anchors.rank() == 2;
  if (!ranks || (deltas.shape[2].known() && deltas.shape[2].size < 4) || !has_size(node, kAnchors, 1, 4) ||
      !has_size(node, kDeltas, 0, scores.shape[0]) || !has_size(node, kDeltas, 1, scores.shape[1]) ||
      !has_size(node, kAnchors, 0, scores.shape[1]) || !has_size(node, kAnchors, 0, deltas.shape[1])) {
    return node.error("scores, deltas and anchors must be [N,A,C], [N,A,4 or more] and [A,4], are ", scores, ", ",
                      deltas, " and ", anchors);
  }
  const Dim images = *dim_merge(scores.shape[0], deltas.shape[0]);
  outputs[0] = {DType::kF32, {images, s.rows()}, nullptr};
  outputs[1] = {DType::kF32, {images, s.rows(), 4}, nullptr};
  outputs[2] = {DType::kI32, {images, s.rows()}, nullptr};
  outputs[3] = {DType::kI32, {images}, nullptr};
  return {};
}

Status detection_postprocessing_reference(const NodeView& node, std::span<const TensorView> in,
                                          std::span<const TensorView> out) {
  PINNACE_ASSIGN(const Settings s, settings_from(node));
  const int64_t anchors = in[kScores].dim(1), classes = in[kScores].dim(2), values = in[kDeltas].dim(2);
  for (const TensorView& o : out) {
    if (o.elements()) std::memset(o.bytes, 0, static_cast<size_t>(o.type->bytes()));
  }
  PINNACE_ASSIGN(Detector detector, Detector::create(node, s, anchors, classes));
  for (int64_t n = 0; n < in[kScores].dim(0); ++n) {
    for (int64_t a = 0; a < anchors; ++a) {
      if (a % kBoxesBetweenLooks == 0 && stopped()) return stop_status(node.label());
      detector.boxes()[a] =
          decode(s, in[kAnchors].data<float>() + 4 * a, in[kDeltas].data<float>() + (n * anchors + a) * values);
    }
    const int64_t row = n * s.rows();
    const int64_t found = detector.run(in[kScores].data<float>() + n * anchors * classes, out[0].data<float>() + row,
                                       out[1].data<float>() + 4 * row, out[2].data<int32_t>() + row);
    if (found < 0) return stop_status(node.label());
    out[3].data<int32_t>()[n] = static_cast<int32_t>(found);
  }
  return {};
}
}  // namespace

PINNACE_OP(detection_postprocessing){
    .name = "detection_postprocessing",
    .inputs = {{"scores", kF32}, {"deltas", kF32}, {"anchors", kF32}},
    .attrs = {float_attr("scale_y", 1), float_attr("scale_x", 1), float_attr("scale_h", 1), float_attr("scale_w", 1),
              int_attr("regular", 0), required_attr("max_detections", AttrKind::kInt),
              int_attr("max_classes_per_detection", 1), int_attr("max_detections_per_class", 100),
              float_attr("score_threshold", 0), float_attr("iou_threshold", 0.5), int_attr("background_label", 0)},
    .min_outputs = 4,
    .max_outputs = 4,
    .types = detection_postprocessing_types,
    .reference = detection_postprocessing_reference,
    .work = Work::kSquared,
};
}  // namespace pinnace
