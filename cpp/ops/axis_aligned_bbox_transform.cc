// axis_aligned_bbox_transform: boxes moved and resized as a network says, per class, and cut to their images.
//   rois           [R, 4]  f32: x1, y1, x2, y2
//   deltas         [R, 4 * classes]  f32: per class dx, dy in widths and heights of the box, dw, dh as logarithms
//   batch_indices  [R]  i32 or i64 in [0, N): which image each box is of
//   image_sizes    [N, 2]  f32: height, width
//   y              [R, 4 * classes]  f32: x1, y1, x2, y2 in [0, width] and [0, height]
// Boxes whose corners are in the wrong order or NaN and images that do not exist are errors. NaN deltas give NaN.
// Source: NNAPI AXIS_ALIGNED_BBOX_TRANSFORM.
#include "ops/box.h"

namespace pinnace {
namespace {
enum Input { kRois, kDeltas, kBatch, kSizes };

Result<TensorType> axis_aligned_bbox_transform_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  for (const auto& [input, rank] : {std::pair{kRois, 2}, {kDeltas, 2}, {kBatch, 1}, {kSizes, 2}}) {
    if (node.input(input).rank() != rank)
      return node.error(node.input_name(input), " must have rank ", rank, ", is ", node.input(input));
  }
  const TensorType& deltas = node.input(kDeltas);
  const Dim boxes = node.input(kRois).shape[0];
  if (!has_size(node, kRois, 1, 4)) return node.error("rois must be [R,4], are ", node.input(kRois));
  if (!has_size(node, kSizes, 1, 2)) return node.error("image_sizes must be [N,2], are ", node.input(kSizes));
  if (!has_size(node, kDeltas, 0, boxes) || !has_size(node, kBatch, 0, boxes)) {
    return node.error("rois, deltas and batch_indices must be of equal length, are ", node.input(kRois), ", ", deltas,
                      " and ", node.input(kBatch));
  }
  if (deltas.shape[1].known() && deltas.shape[1].size % 4) {
    return node.error("deltas must be [R,4*classes], are ", deltas);
  }
  return TensorType{DType::kF32, {*dim_merge(deltas.shape[0], boxes), deltas.shape[1]}, nullptr};
}

Status axis_aligned_bbox_transform_reference(const NodeView& node, std::span<const TensorView> in,
                                             std::span<const TensorView> out) {
  const int64_t images = in[kSizes].dim(0), row = in[kDeltas].dim(1);
  return node.threads().ranges(
      in[kRois].dim(0), 20 * static_cast<double>(row), [&](int64_t begin, int64_t end) -> Status {
        for (int64_t r = begin; r < end; ++r) {
          const Box box = load_box(in[kRois].data<float>() + 4 * r);
          const int64_t image = load_index(in[kBatch], r);
          if (image < 0 || image >= images)
            return node.error("batch index ", image, " of box ", r, " is outside [0,", images, ")");
          if (!box.ordered()) return node.error("the corners of box ", r, " are not in order");
          const float* size = in[kSizes].data<float>() + 2 * image;
          for (int64_t i = r * row; i < (r + 1) * row; i += 4) {
            store_box(transformed(box, in[kDeltas].data<float>() + i, size), out[0].data<float>() + i);
          }
        }
        return {};
      });
}
}  // namespace

PINNACE_OP(axis_aligned_bbox_transform){
    .name = "axis_aligned_bbox_transform",
    .inputs = {{"rois", kF32}, {"deltas", kF32}, {"batch_indices", kIndices}, {"image_sizes", kF32}},
    .type = axis_aligned_bbox_transform_type,
    .reference = axis_aligned_bbox_transform_reference,
};
}  // namespace pinnace
