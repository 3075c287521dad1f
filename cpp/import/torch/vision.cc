// torchvision's own operators: nms, roi_align.
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

constexpr Mapping kMappings[] = {
    {"torchvision.nms", map_nms, ""},
    {"torchvision.roi_align", map_roi_align, ""},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> vision_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
