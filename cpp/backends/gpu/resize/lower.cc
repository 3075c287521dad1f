// Resize of images by tables of taps, which the reference's coordinate formula gives (ops/resize_map.h), and sampling
// at places that a tensor holds.
#include "backends/gpu/resize/params.h"
#include "backends/gpu/resize/resize.h"

#include <cmath>

#include "ops/grid_sample_taps.h"

namespace pinnace::gpu {
namespace {

Result<ResizeTapList> taps_of(const NodeView& node, const ResizeSpec& spec, const ResizeAxis& axis) {
  ResizeTapList taps;
  if (spec.mode == ResizeMode::kNearest) {
    for (int64_t i = 0; i < axis.out; ++i) {
      const float x = resize_coordinate(spec, axis, i);
      const int64_t from = resize_extrapolates(spec, axis, x) ? -1 : resize_nearest(spec, axis, x);
      taps.all.push_back({static_cast<int32_t>(from), 1.0});
    }
    return taps;
  }
  PINNACE_ASSIGN(ResizeTaps found, resize_taps(spec, axis, node.label()));
  taps.count = found.count;
  for (int64_t i = 0; i < axis.out * found.count; ++i) {
    taps.all.push_back({static_cast<int32_t>(found.index[i]), found.weight[i]});
  }
  for (int64_t i = 0; i < axis.out; ++i) {
    if (!resize_extrapolates(spec, axis, resize_coordinate(spec, axis, i))) continue;
    taps.all[static_cast<size_t>(i * found.count)].index = -1;
  }
  return taps;
}

}  // namespace

Status describe_resize(NodeLowering& n, ImageResize& to) {
  if (n.in(0).rank() != 4) return n.refuse(Rule::kRank, to_string(n.in(0)));
  for (int i = 1; i < n.view().input_count(); ++i) {
    if (n.has(i) && !n.constant(i)) return n.refuse(Rule::kConstant, str_cat(n.view().input_name(i)));
  }
  PINNACE_ASSIGN(to.spec, resize_spec(n.view()));
  const bool crops = to.spec.coordinates == ResizeCoordinates::kTfCropAndResize;
  if (crops && n.in(0).quantized()) return n.refuse(Rule::kAttribute, "crop and resize of bytes");
  PINNACE_ASSIGN(const auto axes, resize_axes(n.view()));
  const Shape &in = n.in(0).shape, &out = n.out().shape;
  ResizeAxis both[2] = {{2, in[2].size, out[2].size}, {3, in[3].size, out[3].size}};
  bool columns_seen = false;
  for (const ResizeAxis& axis : axes) {
    if (axis.axis >= 2) {
      both[axis.axis - 2] = axis;
    } else if (!axis.identity(to.spec) && !(crops && axis.in == axis.out && axis.roi_start == 0 && axis.roi_end == 1)) {
      return n.refuse(Rule::kAttribute, str_cat("axis ", axis.axis));
    }
    if (axis.identity(to.spec)) continue;
    to.rows_first &= axis.axis != 2 || !columns_seen;
    columns_seen |= axis.axis == 3;
  }
  const ImageShape s = image_shape(n.in(0));
  to.planes = s.N * s.blocks();
  for (size_t d = 0; d < 2; ++d) {
    if (both[d].identity(to.spec)) {
      for (int64_t i = 0; i < both[d].out; ++i) to.taps[d].all.push_back({static_cast<int32_t>(i), 1.0});
    } else {
      PINNACE_ASSIGN(to.taps[d], taps_of(n.view(), to.spec, both[d]));
    }
  }
  return {};
}

Status lower_resize(NodeLowering& n) {
  PINNACE_TRY(n.require_float(0));
  ImageResize r;
  PINNACE_TRY(describe_resize(n, r));
  // It also comes to lie in the lanes beyond C, which hold finite numbers.
  const float outside = n.view().attr_float("extrapolation_value");
  if (!(std::fabs(outside) <= 65504)) return n.refuse(Rule::kAttribute, str_cat("extrapolation_value ", outside));
  const Shape &in = n.in(0).shape, &out = n.out().shape;
  const std::array<ResizeTapList, 2> taps = r.taps;
  const auto count = static_cast<int64_t>(taps[0].all.size() + taps[1].all.size()) * 2;
  const TensorId table = n.size_table(str_cat("taps of ", to_string(n.in(0)), " to ", to_string(n.out())), count,
                                      [taps](std::span<float> to) {
                                        size_t at = 0;
                                        for (const ResizeTapList& list : taps) {
                                          for (const ResizeTap& tap : list.all) {
                                            to[at++] = std::bit_cast<float>(tap.index);
                                            to[at++] = static_cast<float>(tap.weight);
                                          }
                                        }
                                        return Status();
                                      });
  const TensorId x = n.nc4hw4(0), y = n.make_nc4hw4();
  n.loops(loop_turns(taps[0].count, loop_turns(taps[1].count)));
  n.step(KernelId::resize, ResizeConstants{.TAPS_Y = taps[0].count, .TAPS_X = taps[1].count},
         ResizeParams{.H = in[2].size,
                      .W = in[3].size,
                      .OH = out[2].size,
                      .OW = out[3].size,
                      .outside = static_cast<double>(outside)},
         {x, table, y}, {groups_of(out[3].size, 8), groups_of(out[2].size, 8), static_cast<uint32_t>(r.planes)},
         static_cast<double>(r.planes * 4 * out[2].size * out[3].size * taps[0].count * taps[1].count));
  return {};
}

/// In 16 bits of storage places have 11 bits as well.
Status lower_grid_sample(NodeLowering& n) {
  PINNACE_TRY(n.require_float(0));
  PINNACE_TRY(n.require_float(1));
  if (n.in(0).rank() != 4) return n.refuse(Rule::kRank, to_string(n.in(0)));
  PINNACE_ASSIGN(const GridSpec spec, grid_sample_spec(n.view()));
  const Shape &x = n.in(0).shape, &y = n.out().shape;
  const int64_t blocks = image_shape(n.in(0)).blocks(), places = y[2].size * y[3].size;
  const int64_t count = x[0].size * blocks * places, taps = spec.taps();
  const TensorId image = n.nc4hw4(0), grid = n.dense(1), made = n.make_nc4hw4();
  n.step(KernelId::grid_sample,
         GridSampleConstants{.TAPS = taps, .PADDING = static_cast<int64_t>(spec.padding), .ALIGN = spec.align},
         GridSampleParams{.count = count, .H = x[2].size, .W = x[3].size, .places = places, .blocks = blocks},
         {image, grid, made}, line_groups(count, 64), static_cast<double>(count * 4 * taps * taps));
  return {};
}

}  // namespace pinnace::gpu
