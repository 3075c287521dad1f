// Operators of detectors, which mean what NNAPI's operations of the same names mean, from feature level 3 on. What
// fails there with the values of a run (a box outside of the image, corners in the wrong order, an image that does not
// exist) leaves the run to the CPU.
#include "backends/nnapi/steps/shape.h"

namespace pinnace::nnapi_client {
namespace {

/// Input 0, an image, in the layout that it has; NNAPI's flag for it.
struct Image {
  OperandId x;
  Layout layout;
  OperandId channels_first;
};
Result<Image> image(NodeLowering& n) {
  Image made{kNoOperand, axis_layout(n), kNoOperand};
  PINNACE_ASSIGN(made.x, n.in(0, made.layout));
  made.channels_first = n.flag(made.layout == Layout::kPlain);
  return made;
}

/// Elements of the image per element of its feature map.
double stride(NodeLowering& n) {
  return 1 / n.view().attr_float("spatial_scale");
}

OperandId attr(NodeLowering& n, std::string_view name) {
  return n.scalar(static_cast<int32_t>(n.view().attr_int(name)));
}

Status check_f32(NodeLowering& n) {
  for (int i = 0; i < n.view().input_count(); ++i) {
    const DType dtype = n.in_type(i).dtype;
    if (dtype == DType::kF64 || dtype == DType::kBF16) return n.refuse(Rule::kType, to_string(n.in_type(i)));
  }
  return {};
}

}  // namespace

/// Only the form in which samples beyond the edge take it; corners as they are.
Status lower_roi_align(NodeLowering& n) {
  const NodeView& view = n.view();
  PINNACE_TRY(check_f32(n));
  for (const auto& [name, wanted] : {std::pair<std::string_view, std::string_view>{"mode", "avg"},
                                     {"coordinate_transformation_mode", "output_half_pixel"},
                                     {"outside", "edge"}}) {
    if (view.attr_string(name) != wanted) return n.refuse(Rule::kAttribute, str_cat(name, " ", view.attr_string(name)));
  }
  PINNACE_ASSIGN(const Image x, image(n));
  PINNACE_ASSIGN(const OperandId rois, n.in(1));
  PINNACE_ASSIGN(const OperandId images, n.in_positions(2));
  PINNACE_ASSIGN(const OperandId y, n.out(0, x.layout));
  const OperandId apart = n.real(stride(n), n.in_type(0));
  const bool both = view.attr_int("sampling_ratio_width") < 0;
  return n.add(Op::ROI_ALIGN,
               {x.x, rois, images, attr(n, "output_height"), attr(n, "output_width"), apart, apart,
                attr(n, "sampling_ratio"), attr(n, both ? "sampling_ratio" : "sampling_ratio_width"), x.channels_first},
               y);
}

/// The image's number, which stands before the corners with us, is an operand of its own.
Status lower_max_roi_pool(NodeLowering& n) {
  PINNACE_TRY(check_f32(n));
  const auto size = n.view().attr_ints("pooled_shape");
  PINNACE_ASSIGN(const Image x, image(n));
  PINNACE_ASSIGN(const OperandId rois, n.in(1));
  PINNACE_ASSIGN(const OperandId y, n.out(0, x.layout));
  const uint32_t count = n.operand(rois).dims[0];
  const auto columns = [&](int32_t first, int32_t last) -> Result<OperandId> {
    const OperandId part = n.temp(rois, {count, static_cast<uint32_t>(last - first)});
    const int32_t begin[] = {0, first}, end[] = {static_cast<int32_t>(count), last}, ones[] = {1, 1};
    PINNACE_TRY(n.add(Op::STRIDED_SLICE,
                      {rois, n.ints(begin), n.ints(end), n.ints(ones), n.scalar(0), n.scalar(0), n.scalar(0)}, part));
    return part;
  };
  PINNACE_ASSIGN(OperandId numbers, columns(0, 1));
  PINNACE_ASSIGN(numbers, reshaped(n, numbers, {count}));
  PINNACE_ASSIGN(const OperandId corners, columns(1, 5));
  const OperandId images = n.temp(OperandSpec{nnapi::OperandCode::kTensorInt32, {count}});
  PINNACE_TRY(n.add(Op::CAST, {numbers}, images));
  const OperandId apart = n.real(stride(n), n.in_type(0));
  return n.add(Op::ROI_POOLING,
               {x.x, corners, images, n.scalar(static_cast<int32_t>(size[0])), n.scalar(static_cast<int32_t>(size[1])),
                apart, apart, x.channels_first},
               y);
}

Status lower_axis_aligned_bbox_transform(NodeLowering& n) {
  PINNACE_ASSIGN(const OperandId rois, n.in(0));
  PINNACE_ASSIGN(const OperandId deltas, n.in(1));
  PINNACE_ASSIGN(const OperandId images, n.in_positions(2));
  PINNACE_ASSIGN(const OperandId sizes, n.in(3));
  PINNACE_ASSIGN(const OperandId y, n.out());
  return n.add(Op::AXIS_ALIGNED_BBOX_TRANSFORM, {rois, deltas, images, sizes}, y);
}

Status lower_heatmap_max_keypoint(NodeLowering& n) {
  const double tolerance = n.view().attr_float("tolerance");
  if (static_cast<float>(tolerance) != 1e-5f) return n.refuse(Rule::kAttribute, str_cat("tolerance ", tolerance));
  PINNACE_ASSIGN(const Image x, image(n));
  PINNACE_ASSIGN(const OperandId boxes, n.in(1));
  PINNACE_ASSIGN(const OperandId scores, n.out(0));
  PINNACE_ASSIGN(const OperandId places, n.out(1));
  return n.add(Op::HEATMAP_MAX_KEYPOINT, {x.x, boxes, x.channels_first}, std::vector<OperandId>{scores, places});
}

Status lower_detection_postprocessing(NodeLowering& n) {
  std::vector<OperandId> inputs, outputs;
  for (int i = 0; i < 3; ++i) {
    PINNACE_ASSIGN(const OperandId x, n.in(i));
    inputs.push_back(x);
  }
  const auto real = [&](std::string_view name) { return n.real(n.view().attr_float(name), n.in_type(0)); };
  const auto flag = [&](std::string_view name) { return n.flag(n.view().attr_int(name) != 0); };
  for (const char* name : {"scale_y", "scale_x", "scale_h", "scale_w"}) inputs.push_back(real(name));
  inputs.push_back(flag("regular"));
  for (const char* name : {"max_detections", "max_classes_per_detection", "max_detections_per_class"}) {
    inputs.push_back(attr(n, name));
  }
  inputs.insert(inputs.end(), {real("score_threshold"), real("iou_threshold"), flag("background_label")});
  for (int i = 0; i < 4; ++i) {
    PINNACE_ASSIGN(const OperandId y, n.out(i));
    outputs.push_back(y);
  }
  return n.add(Op::DETECTION_POSTPROCESSING, std::move(inputs), std::move(outputs));
}

}  // namespace pinnace::nnapi_client
