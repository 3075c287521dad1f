// box_with_nms_limit: the boxes of a detector that are left when per image and class those are suppressed that overlap
// a better one, hard or softly, and of each image only the best are kept.
//   scores         [R, classes]  f32; class 0 is the background and is left out
//   boxes          [R, 4 * classes]  f32: x1, y1, x2, y2 per class
//   batch_indices  [R]  i32 or i64: which image each row is of; rows of one image stand together
//   score_threshold      float, default 0: boxes must score more
//   max_detections       int, default -1: the most per image; negative: all
//   kernel               "hard" (default), "linear", "gaussian": by what a box's score is multiplied for each better
//   box
//                        that overlaps it by v: v < iou_threshold ? 1 : 0; v < iou_threshold ? 1 : 1 - v; e^(-v^2 /
//                        sigma)
//   iou_threshold        float, default 0.5
//   sigma                float, default 1
//   nms_score_threshold  float, default 0: boxes whose score falls below it are suppressed
//   kept_scores   [k]  f32: after all multiplications
//   kept_boxes    [k, 4]  f32
//   classes       [k]  i32
//   batches       [k]  as batch_indices
// Kept boxes are in order of images (as they come), classes and falling score; of equal scores the first row comes
// first. Overlap v is intersection over union. NaN scores are left out; corners in the wrong order or NaN are errors.
// The count depends on data; bound: R * min(classes - 1, max_detections). Source: NNAPI BOX_WITH_NMS_LIMIT.
#include "base/sort.h"
#include "ops/box.h"

namespace pinnace {
namespace {
enum Input { kScores, kBoxes, kBatch };
enum class Kernel { kHard, kLinear, kGaussian };

struct Limits {
  float score, overlap, sigma, suppressed;
  int64_t most;
  Kernel kernel;
};

Result<Limits> limits_from(const NodeView& node) {
  const auto real = [&](std::string_view name) { return static_cast<float>(node.attr_float(name)); };
  const std::string_view kernel = node.attr_string("kernel");
  Limits l{real("score_threshold"),
           real("iou_threshold"),
           real("sigma"),
           real("nms_score_threshold"),
           INT64_MAX,
           kernel == "hard"     ? Kernel::kHard
           : kernel == "linear" ? Kernel::kLinear
                                : Kernel::kGaussian};
  if (const int64_t most = node.attr_int("max_detections"); most >= 0) l.most = most;
  if (l.kernel == Kernel::kGaussian && kernel != "gaussian")
    return node.error("kernel is '", kernel, "', must be hard, linear or gaussian");
  return l;
}

float decay(const Limits& l, float v) {
  if (l.kernel == Kernel::kGaussian) return std::exp(-v * v / l.sigma);
  return v < l.overlap ? 1 : l.kernel == Kernel::kHard ? 0 : 1 - v;
}

struct Kept {
  int64_t row, category;
  float score;
};
struct Candidate {
  int64_t row;
  float score;
};

/// One set of inputs, seen as rows of classes.
struct Detections {
  const float* scores;
  const float* boxes;
  int64_t rows, classes;

  Box box(int64_t row, int64_t category) const { return load_box(boxes + (row * classes + category) * 4); }
};

Status check_boxes(const NodeView& node, const Detections& d) {
  for (int64_t row = 0; row < d.rows; ++row) {
    for (int64_t c = 0; c < d.classes; ++c) {
      if (!d.box(row, c).ordered())
        return node.error("the corners of the box of row ", row, " and class ", c, " are not in order");
    }
  }
  return {};
}

/// Appends what is kept of one class among rows [first, last).
void suppress_class(const Detections& d, const Limits& l, int64_t first, int64_t last, int64_t category,
                    Candidate* open, Kept* kept, int64_t& count) {
  int64_t left = 0;
  for (int64_t row = first; row < last; ++row) {
    const float score = d.scores[row * d.classes + category];
    if (score > l.score) open[left++] = {row, score};
  }
  for (int64_t chosen = 0; left > 0 && chosen < l.most && !stopped(); ++chosen) {
    const Candidate best =
        *std::max_element(open, open + left, [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
    kept[count++] = {best.row, category, best.score};
    const Box box = d.box(best.row, category);
    int64_t stay = 0;
    for (int64_t i = 0; i < left; ++i) {
      if (open[i].row == best.row) continue;
      const Candidate next{open[i].row, open[i].score * decay(l, overlap(d.box(open[i].row, category), box))};
      if (next.score >= l.suppressed) open[stay++] = next;
    }
    left = stay;
  }
}

/// The best `most` of kept[0, count), in the order in which they stood.
void keep_best(Kept* kept, int64_t count, int64_t most, int64_t* places) {
  for (int64_t i = 0; i < count; ++i) places[i] = i;
  select_nth(places, places + most, places + count, [kept](int64_t a, int64_t b) {
    return kept[a].score != kept[b].score ? kept[a].score > kept[b].score : a < b;
  });
  sort_all(places, places + most, std::less{});
  for (int64_t i = 0; i < most; ++i) kept[i] = kept[places[i]];
}

struct Found {
  Scratch<Kept> kept;
  int64_t count;
};

Result<Found> find(const NodeView& node, const Detections& d, const TensorView& batch) {
  PINNACE_ASSIGN(const Limits limits, limits_from(node));
  PINNACE_TRY(check_boxes(node, d));
  const int64_t most = saturating_mul(d.rows, std::max<int64_t>(d.classes - 1, 0));
  PINNACE_ASSIGN(auto kept, Scratch<Kept>::allocate(most, node.label()));
  PINNACE_ASSIGN(auto places, Scratch<int64_t>::allocate(most, node.label()));
  PINNACE_ASSIGN(auto open, Scratch<Candidate>::allocate(d.rows, node.label()));
  int64_t count = 0;
  for (int64_t first = 0, last = 0; first < d.rows; first = last) {
    while (last < d.rows && load_index(batch, last) == load_index(batch, first)) ++last;
    const int64_t before = count;
    for (int64_t c = 1; c < d.classes; ++c) {
      suppress_class(d, limits, first, last, c, open.data(), kept.data(), count);
      if (stopped()) return stop_status(node.label());
    }
    if (count - before > limits.most) {
      keep_best(kept.data() + before, count - before, limits.most, places.data());
      if (stopped()) return stop_status(node.label());
      count = before + limits.most;
    }
  }
  return Found{std::move(kept), count};
}

Status box_with_nms_limit_types(const NodeView& node, std::span<TensorType> outputs) {
  PINNACE_TRY(refuse_quantized(node));
  PINNACE_ASSIGN(const Limits limits, limits_from(node));
  const TensorType &scores = node.input(kScores), &boxes = node.input(kBoxes), &batch = node.input(kBatch);
  if (scores.rank() != 2 || boxes.rank() != 2 || batch.rank() != 1 ||
      !has_size(node, kBoxes, 1, dim_mul(scores.shape[1], 4)) || !has_size(node, kBoxes, 0, scores.shape[0]) ||
      !has_size(node, kBatch, 0, scores.shape[0]) || !has_size(node, kBatch, 0, boxes.shape[0])) {
    return node.error("scores, boxes and batch_indices must be [R,classes], [R,4*classes] and [R], are ", scores, ", ",
                      boxes, " and ", batch);
  }
  const Dim rows = *dim_merge(scores.shape[0], boxes.shape[0]), classes = scores.shape[1];
  Dim count;
  if (const int64_t bound = dim_bound(classes); bound >= 0 || limits.most != INT64_MAX) {
    const int64_t per_row = bound < 0 ? limits.most : std::min(limits.most, std::max<int64_t>(bound - 1, 0));
    count = dim_at_most(dim_mul(rows, per_row));
  }
  if (node.input_data(kScores) && node.input_data(kBoxes) && node.input_data(kBatch) && scores.concrete() &&
      boxes.concrete() && batch.concrete()) {
    // Only read: TensorView has one type of pointer for both directions.
    const TensorView images{&batch, static_cast<std::byte*>(const_cast<void*>(node.input_data(kBatch)))};
    const Detections d{static_cast<const float*>(node.input_data(kScores)),
                       static_cast<const float*>(node.input_data(kBoxes)), scores.shape[0].size, classes.size};
    PINNACE_ASSIGN(const Found found, find(node, d, images));
    count = found.count;
  }
  outputs[0] = {DType::kF32, {count}, nullptr};
  outputs[1] = {DType::kF32, {count, 4}, nullptr};
  outputs[2] = {DType::kI32, {count}, nullptr};
  outputs[3] = {batch.dtype, {count}, nullptr};
  return {};
}

Status box_with_nms_limit_reference(const NodeView& node, std::span<const TensorView> in,
                                    std::span<const TensorView> out) {
  const Detections d{in[kScores].data<float>(), in[kBoxes].data<float>(), in[kScores].dim(0), in[kScores].dim(1)};
  PINNACE_ASSIGN(Found found, find(node, d, in[kBatch]));
  const size_t index_bytes = element_bytes(in[kBatch].dtype());
  for (int64_t i = 0; i < found.count; ++i) {
    const Kept& kept = found.kept[i];
    out[0].data<float>()[i] = kept.score;
    store_box(d.box(kept.row, kept.category), out[1].data<float>() + 4 * i);
    out[2].data<int32_t>()[i] = static_cast<int32_t>(kept.category);
    copy_element(out[3].bytes + static_cast<size_t>(i) * index_bytes,
                 in[kBatch].bytes + static_cast<size_t>(kept.row) * index_bytes, index_bytes);
  }
  return {};
}
}  // namespace

PINNACE_OP(box_with_nms_limit){
    .name = "box_with_nms_limit",
    .inputs = {{"scores", kF32}, {"boxes", kF32}, {"batch_indices", kIndices}},
    .attrs = {float_attr("score_threshold", 0), int_attr("max_detections", -1), string_attr("kernel", "hard"),
              float_attr("iou_threshold", 0.5), float_attr("sigma", 1), float_attr("nms_score_threshold", 0)},
    .min_outputs = 4,
    .max_outputs = 4,
    .types = box_with_nms_limit_types,
    .reference = box_with_nms_limit_reference,
    .traits = Trait::kRunsToCount,
    .work = Work::kSquared,
};
}  // namespace pinnace
