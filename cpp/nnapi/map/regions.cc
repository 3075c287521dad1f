// The contents of regions of an image, brought to one size: aligned samples, or the largest elements.
#include "nnapi/map/real.h"

namespace pinnace::nnapi {
namespace {

struct Regions {
  ValueId x, rois, batch;  ///< x: float32, channels first; rois: float32, in elements of x
  int64_t height = 0, width = 0;
  bool nchw = false;
};

/// Inputs 0 to 6, and the layout at `layout`.
Result<Regions> read_regions(Call& call, size_t layout) {
  Regions r{};
  PINNACE_ASSIGN(r.nchw, call.flag(layout));
  PINNACE_ASSIGN(r.x, real_input(call, 0));
  if (call.rank(r.x) != 4) return call.error("takes an image, was given ", call.type(r.x));
  PINNACE_ASSIGN(r.x, call.to_nchw(r.x, r.nchw));
  PINNACE_ASSIGN(r.batch, call.in(2));
  PINNACE_ASSIGN(r.height, call.integer(3));
  PINNACE_ASSIGN(r.width, call.integer(4));
  PINNACE_ASSIGN(const double stride_height, call.real(5));
  PINNACE_ASSIGN(const double stride_width, call.real(6));
  PINNACE_ASSIGN(const int64_t height, call.size(r.x, 2));
  PINNACE_ASSIGN(const int64_t width, call.size(r.x, 3));
  PINNACE_ASSIGN(const ValueId rois, real_input(call, 1));
  PINNACE_ASSIGN(
      r.rois,
      call.emit(
          "scale_rois", {rois},
          {{"height", height}, {"width", width}, {"stride_height", stride_height}, {"stride_width", stride_width}}));
  return r;
}

}  // namespace

Status map_roi_align(Call& call) {
  PINNACE_ASSIGN(const Regions r, read_regions(call, 9));
  PINNACE_ASSIGN(const int64_t down, call.integer(7));
  PINNACE_ASSIGN(const int64_t across, call.integer(8));
  if (down < 0 || across < 0) return call.error("sampling counts ", down, " and ", across, " must not be negative");
  PINNACE_ASSIGN(ValueId y, call.emit("roi_align", {r.x, r.rois, r.batch},
                                      {{"coordinate_transformation_mode", std::string("output_half_pixel")},
                                       {"outside", std::string("edge")},
                                       {"output_height", r.height},
                                       {"output_width", r.width},
                                       {"sampling_ratio", down},
                                       {"sampling_ratio_width", across}}));
  PINNACE_ASSIGN(y, call.from_nchw(y, r.nchw));
  return finish_real(call, 0, y);
}

Status map_roi_pooling(Call& call) {
  PINNACE_ASSIGN(const Regions r, read_regions(call, 7));
  PINNACE_ASSIGN(ValueId images, call.cast(r.batch, DType::kF32));
  PINNACE_ASSIGN(const ValueId axes, call.constant_ints({1}));
  PINNACE_ASSIGN(images, call.emit("unsqueeze", {images, axes}));
  PINNACE_ASSIGN(const ValueId rois, call.emit("concat", {images, r.rois}, {{"axis", int64_t{1}}}));
  PINNACE_ASSIGN(ValueId y,
                 call.emit("max_roi_pool", {r.x, rois}, {{"pooled_shape", std::vector<int64_t>{r.height, r.width}}}));
  PINNACE_ASSIGN(y, call.from_nchw(y, r.nchw));
  return finish_like(call, 0, y, 0);
}

}  // namespace pinnace::nnapi
