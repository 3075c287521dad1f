// roi_align: the contents of boxes of x, each brought to one size by averaging (or taking the largest of) bilinear
// samples.
//   x              [N, C, H, W]  floats
//   rois           [R, 4]  as x: x1, y1, x2, y2, times spatial_scale in elements of x
//   batch_indices  [R]  i64 in [0, N): which image each box is of
//   y              [R, C, output_height, output_width]  as x
//   coordinate_transformation_mode  "half_pixel" (default): 0.5 is taken off the corners; "output_half_pixel": corners
//   as
//                                   they are, boxes at least 1 wide and high
//   mode            "avg" (default); "max": the largest of all samples' four weighted corners, as ONNX defines it
//   output_height, output_width     int, default 1
//   sampling_ratio  int, default 0: samples per bin and direction; 0: ceil(box size / output size)
//   sampling_ratio_width  int, default -1: as sampling_ratio; else the samples from left to right
//   spatial_scale   float, default 1
//   outside         "zero" (default): samples more than 1 beyond the edge are 0; "edge": they take the edge
// Samples at most 1 beyond the edge take the edge. Places are computed in float32 (f64: double), sums in double. Boxes
// that are not finite and more than 65536 samples per bin and direction are errors. NaN and infinities go through
// products and sums as IEEE 754 has them. Source: ONNX RoiAlign, opset 22; outside and sampling_ratio_width for
// NNAPI's.
#include "ops/roi_align.h"

#include "base/cancel.h"
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> roi_align_type(const NodeView& node) {
  const TensorType &x = node.input(0), &rois = node.input(1), &batch = node.input(2);
  const std::string_view transformation = node.attr_string("coordinate_transformation_mode"),
                         mode = node.attr_string("mode");
  if (transformation != "half_pixel" && transformation != "output_half_pixel") {
    return node.error("coordinate_transformation_mode is '", transformation,
                      "', must be half_pixel or output_half_pixel");
  }
  if (mode != "avg" && mode != "max") return node.error("mode is '", mode, "', must be avg or max");
  if (x.rank() != 4) return node.error("x must be [N,C,H,W], is ", x);
  if (rois.rank() != 2 || (rois.shape[1].known() && rois.shape[1].size != 4)) {
    return node.error("rois must be [R,4], are ", rois);
  }
  PINNACE_ASSIGN(const Dim length, vector_length(node, 2, false));
  const auto count = dim_merge(rois.shape[0], length);
  if (!count) return node.error("rois ", rois, " and batch_indices ", batch, " differ in length");
  for (const char* name : {"output_height", "output_width"}) {
    if (node.attr_int(name) < 1) return node.error(name, " ", node.attr_int(name), " is not positive");
  }
  for (const bool across : {false, true}) {
    const int64_t ratio = roi_sampling_ratio(node, across);
    if (ratio < 0 || ratio > kMostRoiSamples)
      return node.error("sampling_ratio ", ratio, " is outside [0,", kMostRoiSamples, "]");
  }
  const std::string_view outside = node.attr_string("outside");
  if (outside != "zero" && outside != "edge") return node.error("outside is '", outside, "', must be zero or edge");
  return TensorType{
      x.dtype, {*count, x.shape[1], node.attr_int("output_height"), node.attr_int("output_width")}, nullptr};
}

template <class T>
Status align(const NodeView& node, const TensorView& x, const TensorView& rois, const TensorView& batch,
             const TensorView& y) {
  using F = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const bool average = node.attr_string("mode") == "avg";
  const int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3), rows = y.dim(2), cols = y.dim(3);
  const bool edge = node.attr_string("outside") == "edge";
  const int64_t ratio_down = roi_sampling_ratio(node, false), ratio_across = roi_sampling_ratio(node, true);
  const double samples = static_cast<double>(std::max<int64_t>(1, ratio_down) * std::max<int64_t>(1, ratio_across));
  const double cost = 30 * static_cast<double>(channels * rows * cols) * samples;
  return node.threads().ranges(rois.dim(0), cost, [&](int64_t begin, int64_t end) -> Status {
    T* to = y.data<T>() + begin * channels * rows * cols;
    for (int64_t r = begin; r < end; ++r) {
      const int64_t image = load_index(batch, r);
      if (image < 0 || image >= x.dim(0))
        return node.error("batch index ", image, " of box ", r, " is outside [0,", x.dim(0), ")");
      F corner[4];
      for (int i = 0; i < 4; ++i) corner[i] = static_cast<F>(widen(rois.data<T>()[4 * r + i]));
      PINNACE_ASSIGN(const RoiExtent<F> across, roi_extent(node, corner[0], corner[2], cols, ratio_across, r));
      PINNACE_ASSIGN(const RoiExtent<F> down, roi_extent(node, corner[1], corner[3], rows, ratio_down, r));
      for (int64_t c = 0; c < channels; ++c) {
        const T* from = x.data<T>() + (image * channels + c) * height * width;
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t col = 0; col < cols; ++col) {
            double sum = 0, largest = -std::numeric_limits<double>::infinity();
            for (int64_t i = 0; i < down.samples && !loop_stops(); ++i) {
              const RoiNeighbours v = roi_neighbours(down.place(row, i), height, edge);
              for (int64_t j = 0; j < across.samples; ++j) {
                const RoiNeighbours h = roi_neighbours(across.place(col, j), width, edge);
                double parts[4] = {};
                if (!v.outside && !h.outside) {
                  const auto at = [&](int64_t a, int64_t b) { return static_cast<double>(widen(from[a * width + b])); };
                  parts[0] = v.weight_low * h.weight_low * at(v.low, h.low);
                  parts[1] = v.weight_low * h.weight_high * at(v.low, h.high);
                  parts[2] = v.weight_high * h.weight_low * at(v.high, h.low);
                  parts[3] = v.weight_high * h.weight_high * at(v.high, h.high);
                }
                for (double part : parts) {
                  sum += part;
                  largest = larger(largest, part);
                }
              }
            }
            const int64_t samples = down.samples * across.samples;
            *to++ = narrow<T>(samples == 0 ? 0 : average ? sum / static_cast<double>(samples) : largest);
          }
        }
      }
    }
    return {};
  });
}

Status roi_align_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return visit_float(in[0].dtype(),
                     [&](auto zero) { return align<decltype(zero)>(node, in[0], in[1], in[2], out[0]); });
}
}  // namespace

PINNACE_OP(roi_align){
    .name = "roi_align",
    .inputs = {{"x", kFloats, 'T'}, {"rois", kFloats, 'T'}, {"batch_indices", kIndices}},
    .attrs = {string_attr("coordinate_transformation_mode", "half_pixel"), string_attr("mode", "avg"),
              int_attr("output_height", 1), int_attr("output_width", 1), int_attr("sampling_ratio", 0),
              int_attr("sampling_ratio_width", -1), float_attr("spatial_scale", 1), string_attr("outside", "zero")},
    .type = roi_align_type,
    .reference = roi_align_reference,
    .work = Work::kSamples,
};
}  // namespace pinnace
