// scale_rois: boxes in an image to boxes in a feature map that was made of it, which must hold them.
//   rois           [R, 4]  f32: x1, y1, x2, y2
//   height, width  int, required: of the feature map
//   stride_height, stride_width  float, default 1: elements of the image per element of the feature map
//   y              [R, 4]  f32: rois over the strides
// Corners in the wrong order, or outside [0, height] and [0, width] of the feature map, are errors; so are NaN. The two
// steps that NNAPI's ROI_ALIGN and ROI_POOLING take before they sample.
#include <cmath>

#include "ops/move.h"

namespace pinnace {
namespace {
struct FeatureMap {
  float size[2], stride[2];  ///< width, height
};

Result<FeatureMap> feature_map(const NodeView& node) {
  FeatureMap map{};
  constexpr const char* kSizes[] = {"width", "height"};
  constexpr const char* kStrides[] = {"stride_width", "stride_height"};
  for (int a = 0; a < 2; ++a) {
    const int64_t size = node.attr_int(kSizes[a]);
    if (size < 0) return node.error(kSizes[a], " ", size, " is negative");
    map.size[a] = static_cast<float>(size);
    map.stride[a] = static_cast<float>(node.attr_float(kStrides[a]));
    if (!(map.stride[a] > 0 && std::isfinite(map.stride[a])))
      return node.error(kStrides[a], " ", map.stride[a], " is not positive and finite");
  }
  return map;
}

Result<TensorType> scale_rois_type(const NodeView& node) {
  const TensorType& rois = node.input(0);
  PINNACE_TRY(feature_map(node).status());
  if (rois.rank() != 2 || !dim_merge(rois.shape[1], 4)) return node.error("rois must be [R,4], are ", rois);
  return TensorType{DType::kF32, {rois.shape[0], 4}, nullptr};
}

Status scale_rois_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  PINNACE_ASSIGN(const FeatureMap map, feature_map(node));
  const float* from = in[0].data<float>();
  float* to = out[0].data<float>();
  for (int64_t r = 0; r < in[0].dim(0); ++r, from += 4, to += 4) {
    for (int a = 0; a < 2; ++a) {
      const float first = from[a] / map.stride[a], last = from[a + 2] / map.stride[a];
      if (!(first >= 0 && first <= last && last <= map.size[a])) {
        return node.error("box ", r, " from ", from[a], " to ", from[a + 2], " is not within [0,", map.size[a],
                          "] times ", map.stride[a]);
      }
      to[a] = first;
      to[a + 2] = last;
    }
  }
  return {};
}
}  // namespace

PINNACE_OP(scale_rois){
    .name = "scale_rois",
    .inputs = {{"rois", kF32}},
    .attrs = {required_attr("height", AttrKind::kInt), required_attr("width", AttrKind::kInt),
              float_attr("stride_height", 1), float_attr("stride_width", 1)},
    .type = scale_rois_type,
    .reference = scale_rois_reference,
    .in_place = 1,
};
}  // namespace pinnace
