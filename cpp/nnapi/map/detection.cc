// What detectors do after their last convolution: boxes from deltas, and the best of them.
#include "nnapi/map/real.h"

namespace pinnace::nnapi {
namespace {

/// Output i: indices, which are int32.
Status finish_indices(Call& call, size_t i, ValueId y) {
  PINNACE_ASSIGN(y, call.cast(y, DType::kI32));
  return call.finish(i, y);
}

}  // namespace

Status map_axis_aligned_bbox_transform(Call& call) {
  PINNACE_ASSIGN(const ValueId rois, real_input(call, 0));
  PINNACE_ASSIGN(const ValueId deltas, real_input(call, 1));
  PINNACE_ASSIGN(const ValueId batch, call.in(2));
  PINNACE_ASSIGN(const ValueId sizes, real_input(call, 3));
  PINNACE_ASSIGN(const ValueId y, call.emit("axis_aligned_bbox_transform", {rois, deltas, batch, sizes}));
  return finish_real(call, 0, y);
}

Status map_box_with_nms_limit(Call& call) {
  PINNACE_ASSIGN(const ValueId scores, real_input(call, 0));
  PINNACE_ASSIGN(const ValueId boxes, real_input(call, 1));
  PINNACE_ASSIGN(const ValueId batch, call.in(2));
  PINNACE_ASSIGN(const double score_threshold, call.real(3));
  PINNACE_ASSIGN(const int64_t most, call.integer(4));
  PINNACE_ASSIGN(const int64_t kernel, call.integer(5));
  PINNACE_ASSIGN(const double overlap, call.real(6));
  PINNACE_ASSIGN(const double sigma, call.real(7));
  PINNACE_ASSIGN(const double suppressed, call.real(8));
  if (kernel < 0 || kernel > 2) return call.error("kernel ", kernel, " is not one of 0 to 2");
  constexpr const char* kKernels[] = {"hard", "linear", "gaussian"};
  PINNACE_ASSIGN(const auto y, call.emit_many("box_with_nms_limit", {scores, boxes, batch},
                                              {{"score_threshold", score_threshold},
                                               {"max_detections", most},
                                               {"kernel", std::string(kKernels[kernel])},
                                               {"iou_threshold", overlap},
                                               {"sigma", sigma},
                                               {"nms_score_threshold", suppressed}},
                                              4));
  PINNACE_TRY(finish_like(call, 0, y[0], 0));
  PINNACE_TRY(finish_like(call, 1, y[1], 1));
  PINNACE_TRY(finish_indices(call, 2, y[2]));
  return finish_indices(call, 3, y[3]);
}

Status map_generate_proposals(Call& call) {
  PINNACE_ASSIGN(const bool nchw, call.flag(10));
  std::vector<ValueId> inputs(4);
  for (size_t i = 0; i < 4; ++i) {
    PINNACE_ASSIGN(inputs[i], real_input(call, i));
    if (i < 2 && call.rank(inputs[i]) != 4)
      return call.error("input ", i, " is ", call.type(inputs[i]), ", not an image");
    if (i < 2 && nchw) {
      PINNACE_ASSIGN(inputs[i], call.from_nchw(inputs[i]));
    }
  }
  PINNACE_ASSIGN(const double stride_height, call.real(4));
  PINNACE_ASSIGN(const double stride_width, call.real(5));
  PINNACE_ASSIGN(const int64_t before, call.integer(6));
  PINNACE_ASSIGN(const int64_t after, call.integer(7));
  PINNACE_ASSIGN(const double overlap, call.real(8));
  PINNACE_ASSIGN(const double min_size, call.real(9));
  PINNACE_ASSIGN(const auto y, call.emit_many("generate_proposals", inputs,
                                              {{"stride_height", stride_height},
                                               {"stride_width", stride_width},
                                               {"pre_nms_count", before},
                                               {"post_nms_count", after},
                                               {"iou_threshold", overlap},
                                               {"min_size", min_size}},
                                              3));
  PINNACE_TRY(finish_like(call, 0, y[0], 0));
  PINNACE_TRY(finish_real(call, 1, y[1]));
  return finish_indices(call, 2, y[2]);
}

Status map_detection_postprocessing(Call& call) {
  std::vector<ValueId> inputs(3);
  for (size_t i = 0; i < 3; ++i) {
    PINNACE_ASSIGN(inputs[i], real_input(call, i));
  }
  Attrs attrs;
  constexpr std::pair<size_t, const char*> kReals[] = {{3, "scale_y"}, {4, "scale_x"},          {5, "scale_h"},
                                                       {6, "scale_w"}, {11, "score_threshold"}, {12, "iou_threshold"}};
  for (const auto& [i, name] : kReals) {
    PINNACE_ASSIGN(const double value, call.real(i));
    attrs.emplace_back(name, value);
  }
  constexpr std::pair<size_t, const char*> kIntegers[] = {{7, "regular"},
                                                          {8, "max_detections"},
                                                          {9, "max_classes_per_detection"},
                                                          {10, "max_detections_per_class"},
                                                          {13, "background_label"}};
  for (const auto& [i, name] : kIntegers) {
    PINNACE_ASSIGN(const int64_t value, call.integer(i));
    attrs.emplace_back(name, value);
  }
  PINNACE_ASSIGN(const auto y, call.emit_many("detection_postprocessing", inputs, std::move(attrs), 4));
  PINNACE_TRY(finish_real(call, 0, y[0]));
  PINNACE_TRY(finish_real(call, 1, y[1]));
  PINNACE_TRY(finish_indices(call, 2, y[2]));
  return finish_indices(call, 3, y[3]);
}

Status map_heatmap_max_keypoint(Call& call) {
  PINNACE_ASSIGN(const bool nchw, call.flag(2));
  PINNACE_ASSIGN(ValueId maps, real_input(call, 0));
  PINNACE_ASSIGN(const ValueId boxes, real_input(call, 1));
  if (call.rank(maps) != 4) return call.error("takes an image, was given ", call.type(maps));
  PINNACE_ASSIGN(maps, call.to_nchw(maps, nchw));
  const double tolerance = call.operand(0).type == OperandCode::kTensorFloat16 ? 1e-3 : 1e-5;
  PINNACE_ASSIGN(const auto y, call.emit_many("heatmap_max_keypoint", {maps, boxes}, {{"tolerance", tolerance}}, 2));
  PINNACE_TRY(finish_real(call, 0, y[0]));
  return finish_real(call, 1, y[1]);
}

}  // namespace pinnace::nnapi
