// generate_proposals: the boxes of a region proposal network: anchors at every place of a feature map, moved as the
// network says, of which the best are kept that do not overlap better ones.
//   scores       [N, H, W, A]  f32
//   deltas       [N, H, W, 4 * A]  f32: dx, dy, dw, dh per anchor, as in axis_aligned_bbox_transform
//   anchors      [A, 4]  f32: x1, y1, x2, y2 at place (0, 0)
//   image_sizes  [N, 2]  f32: height, width
//   stride_height, stride_width  float, default 1: how far apart the anchors of neighbouring places are
//   pre_nms_count   int, default 0: the most boxes per image that are looked at, the best ones; 0 or less: all
//   post_nms_count  int, default 0: the most that are kept; 0 or less: all
//   iou_threshold   float, default 0.5: boxes that overlap a better one by this or more are left out
//   min_size        float, default 0: boxes must be wider and higher
//   kept_scores  [k]  f32
//   kept_boxes   [k, 4]  f32
//   batches      [k]  i32
// Kept boxes are in order of images and falling score; of equal scores the first in row-major order comes first. Boxes
// whose centre is not inside the image (right and bottom edges are outside) are left out, as are those with NaN corners
// or scores; anchors with corners in the wrong order or NaN are errors. The count depends on data; bound:
// N * min(H * W * A, pre_nms_count, post_nms_count). Source: NNAPI GENERATE_PROPOSALS.
#include "base/sort.h"
#include "ops/box.h"

namespace pinnace {
namespace {
enum Input { kScores, kDeltas, kAnchors, kSizes };

struct Limits {
  int64_t before, after;
  float overlap, min_size, stride_x, stride_y;
};
Limits limits_from(const NodeView& node) {
  const auto real = [&](std::string_view name) { return static_cast<float>(node.attr_float(name)); };
  const auto count = [&](std::string_view name) { return node.attr_int(name) > 0 ? node.attr_int(name) : INT64_MAX; };
  return {count("pre_nms_count"), count("post_nms_count"), real("iou_threshold"),
          real("min_size"),       real("stride_width"),    real("stride_height")};
}

/// The inputs of one run.
struct Maps {
  const float *scores, *deltas, *anchors, *sizes;
  int64_t images, height, width, per_place;
  int64_t boxes() const { return height * width * per_place; }
};

Maps maps_of(const Shape& scores, const void* const (&data)[4]) {
  const auto floats = [&](Input i) { return static_cast<const float*>(data[i]); };
  return {floats(kScores), floats(kDeltas), floats(kAnchors), floats(kSizes),
          scores[0].size,  scores[1].size,  scores[2].size,   scores[3].size};
}

/// The anchor of box i of an image, at its place and moved by its deltas.
Box proposal(const Maps& m, const Limits& l, int64_t image, int64_t i) {
  const int64_t place = i / m.per_place, row = place / m.width, column = place % m.width;
  const float x = static_cast<float>(column) * l.stride_x, y = static_cast<float>(row) * l.stride_y;
  const Box anchor = load_box(m.anchors + 4 * (i % m.per_place));
  return transformed({anchor.x1 + x, anchor.y1 + y, anchor.x2 + x, anchor.y2 + y},
                     m.deltas + 4 * (image * m.boxes() + i), m.sizes + 2 * image);
}

bool large_and_inside(const Box& box, const Limits& l, const float* size) {
  return box.width() > l.min_size && box.height() > l.min_size && (box.x1 + box.x2) / 2 < size[1] &&
         (box.y1 + box.y2) / 2 < size[0];
}

/// Calls f(image, score, box) for every kept box in order.
template <class F>
Status propose(const NodeView& node, const Maps& m, F f) {
  const Limits l = limits_from(node);
  for (int64_t a = 0; a < m.per_place; ++a) {
    if (!load_box(m.anchors + 4 * a).ordered()) return node.error("the corners of anchor ", a, " are not in order");
  }
  const int64_t looked_at = std::min(m.boxes(), l.before);
  PINNACE_ASSIGN(auto order, Scratch<int64_t>::allocate(m.boxes(), node.label()));
  PINNACE_ASSIGN(auto boxes, Scratch<Box>::allocate(looked_at, node.label()));
  PINNACE_ASSIGN(auto scores, Scratch<float>::allocate(looked_at, node.label()));
  PINNACE_ASSIGN(auto taken, Scratch<Box>::allocate(std::min(looked_at, l.after), node.label()));
  for (int64_t image = 0; image < m.images; ++image) {
    const float* all = m.scores + image * m.boxes();
    int64_t numbers = 0, left = 0;
    for (int64_t i = 0; i < m.boxes(); ++i) {
      if (all[i] == all[i]) order[numbers++] = i;
    }
    const int64_t best = std::min(numbers, looked_at);
    sort_first(order.data(), order.data() + best, order.data() + numbers,
               [all](int64_t a, int64_t b) { return all[a] != all[b] ? all[a] > all[b] : a < b; });
    for (int64_t i = 0; i < best; ++i) {
      if (i % kBoxesBetweenLooks == 0 && stopped()) return stop_status(node.label());
      const Box box = proposal(m, l, image, order[i]);
      if (!large_and_inside(box, l, m.sizes + 2 * image)) continue;
      scores[left] = all[order[i]];
      boxes[left++] = box;
    }
    for (int64_t i = 0; i < left; ++i) order[i] = i;
    const bool goes_on = suppress(boxes.data(), order.span().first(static_cast<size_t>(left)), l.overlap, l.after,
                                  taken.data(), [&](int64_t i) { f(image, scores[i], boxes[i]); });
    if (!goes_on) return stop_status(node.label());
  }
  return {};
}

Status check_shapes(const NodeView& node) {
  const TensorType &scores = node.input(kScores), &deltas = node.input(kDeltas), &anchors = node.input(kAnchors);
  bool fit = scores.rank() == 4 && deltas.rank() == 4 && anchors.rank() == 2 && node.input(kSizes).rank() == 2;
  for (size_t d = 0; fit && d < 3; ++d) fit = has_size(node, kDeltas, d, scores.shape[d]);
  fit = fit && has_size(node, kDeltas, 3, dim_mul(scores.shape[3], 4)) &&
        has_size(node, kDeltas, 3, dim_mul(anchors.shape[0], 4)) && has_size(node, kAnchors, 0, scores.shape[3]) &&
        has_size(node, kAnchors, 1, 4) && has_size(node, kSizes, 0, scores.shape[0]) &&
        has_size(node, kSizes, 0, deltas.shape[0]) && has_size(node, kSizes, 1, 2);
  if (fit) return {};
  return node.error("scores, deltas, anchors and image_sizes must be [N,H,W,A], [N,H,W,4*A], [A,4] and [N,2], are ",
                    scores, ", ", deltas, ", ", anchors, " and ", node.input(kSizes));
}

/// The most boxes of all images; unknown where not even a bound is known.
Dim most_boxes(const NodeView& node) {
  const Limits l = limits_from(node);
  const Shape& scores = node.input(kScores).shape;
  const Dim all = dim_product(std::span(scores).subspan(1));
  const int64_t bound = dim_bound(all), limit = std::min(l.before, l.after);
  if (bound < 0 && limit == INT64_MAX) return {};
  return dim_at_most(dim_mul(scores[0], bound < 0 ? limit : std::min(bound, limit)));
}

Status generate_proposals_types(const NodeView& node, std::span<TensorType> outputs) {
  PINNACE_TRY(check_shapes(node));
  const void* data[4];
  bool known = true;
  for (int i = 0; i < 4; ++i) {
    data[i] = node.input_data(i);
    known &= data[i] && node.input(i).concrete();
  }
  Dim count = most_boxes(node);
  if (known) {
    int64_t found = 0;
    PINNACE_TRY(propose(node, maps_of(node.input(kScores).shape, data), [&](int64_t, float, const Box&) { ++found; }));
    count = found;
  }
  outputs[0] = {DType::kF32, {count}, nullptr};
  outputs[1] = {DType::kF32, {count, 4}, nullptr};
  outputs[2] = {DType::kI32, {count}, nullptr};
  return {};
}

Status generate_proposals_reference(const NodeView& node, std::span<const TensorView> in,
                                    std::span<const TensorView> out) {
  const void* data[] = {in[0].bytes, in[1].bytes, in[2].bytes, in[3].bytes};
  int64_t at = 0;
  return propose(node, maps_of(in[kScores].type->shape, data), [&](int64_t image, float score, const Box& box) {
    out[0].data<float>()[at] = score;
    store_box(box, out[1].data<float>() + 4 * at);
    out[2].data<int32_t>()[at++] = static_cast<int32_t>(image);
  });
}
}  // namespace

PINNACE_OP(generate_proposals){
    .name = "generate_proposals",
    .inputs = {{"scores", kF32}, {"deltas", kF32}, {"anchors", kF32}, {"image_sizes", kF32}},
    .attrs = {float_attr("stride_height", 1), float_attr("stride_width", 1), int_attr("pre_nms_count", 0),
              int_attr("post_nms_count", 0), float_attr("iou_threshold", 0.5), float_attr("min_size", 0)},
    .min_outputs = 3,
    .max_outputs = 3,
    .types = generate_proposals_types,
    .reference = generate_proposals_reference,
    .traits = Trait::kRunsToCount,
    .work = Work::kSquared,
};
}  // namespace pinnace
