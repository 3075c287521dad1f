// torchvision's own operators: nms, roi_align, roi_pool, deform_conv2d.
#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

// dets [n, 4] as corners, scores [n] -> indices that stay, best first
void map_nms(Call& c) {
  const ValueId boxes = c.unsqueeze(c.tensor("dets"), {0}), scores = c.unsqueeze(c.tensor("scores"), {0, 1});
  const double threshold = c.number("iou_threshold", 0.5);
  const ValueId all = c.constant_ints({1 << 30});
  const ValueId kept =
      c.add("non_max_suppression", {boxes, scores, all, c.constant(threshold, DType::kF32, {1})});  // [k, 3]
  c.output(c.squeeze(c.slice(kept, 1, Scalar::of_int(2), Scalar::of_int(3)), {1}));
}

// rois [k, 5]: image, x1, y1, x2, y2
void map_roi_align(Call& c) {
  const ValueId x = c.tensor("input"), rois = c.tensor("rois");
  const ValueId boxes = c.slice(rois, 1, Scalar::of_int(1), Scalar::of_int(5));
  const ValueId images = c.cast(c.squeeze(c.slice(rois, 1, Scalar::of_int(0), Scalar::of_int(1)), {1}), DType::kI64);
  const bool aligned = c.boolean("aligned", false);
  c.output(c.add("roi_align", {x, boxes, images},
                 {{"coordinate_transformation_mode", aligned ? "half_pixel" : "output_half_pixel"},
                  {"output_height", c.integer("pooled_height")},
                  {"output_width", c.integer("pooled_width")},
                  {"sampling_ratio", std::max<int64_t>(c.integer("sampling_ratio", 0), 0)},
                  {"spatial_scale", c.number("spatial_scale", 1)}}));
}

// rois as those of roi_align; also where each bin's largest element lies, which only training reads
void map_roi_pool(Call& c) {
  if (c.reads(1)) return c.fail("the places that roi_pool gives beside its values");
  const ValueId x = c.tensor("input");
  const std::vector<int64_t> bins = {c.integer("pooled_height"), c.integer("pooled_width")};
  c.outputs({c.add("max_roi_pool", {x, c.cast(c.tensor("rois"), c.dtype_of(x))},
                   {{"pooled_shape", bins}, {"spatial_scale", c.number("spatial_scale", 1)}}),
             kNoValue});
}

// Offsets and mask in the order that ONNX has them too.
void map_deform_conv(Call& c) {
  const ValueId x = c.tensor("input"), weight = c.tensor("weight"), offset = c.tensor("offset");
  const ValueId bias = c.tensor("bias"), mask = c.tensor("mask");
  const auto pair = [&](const char* rows, const char* columns) {
    return std::vector<int64_t>{c.integer(rows), c.integer(columns)};
  };
  std::vector<int64_t> pads = pair("pad_h", "pad_w");
  pads.insert(pads.end(), {pads[0], pads[1]});
  c.output(c.add("deform_conv", {x, weight, offset, bias, c.boolean("use_mask", false) ? mask : kNoValue},
                 {{"strides", pair("stride_h", "stride_w")},
                  {"pads", pads},
                  {"dilations", pair("dilation_h", "dilation_w")},
                  {"group", c.integer("groups")},
                  {"offset_group", c.integer("offset_groups")}}));
}

constexpr Mapping kMappings[] = {
    {"torchvision.deform_conv2d", map_deform_conv, ""},
    {"torchvision.nms", map_nms, ""},
    {"torchvision.roi_align", map_roi_align, ""},
    {"torchvision.roi_pool", map_roi_pool, ""},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> vision_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
