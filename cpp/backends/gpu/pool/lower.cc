// Pools of NC4HW4 buffers, and regions of dense tensors.
#include "backends/gpu/lowering.h"
#include "backends/gpu/pool/params.h"
#include "ops/pool.h"

namespace pinnace::gpu {
namespace {

/// kind: KIND of pool.comp; power: of kind 2.
Status windowed(NodeLowering& n, int kind, double power = 0) {
  PINNACE_TRY(n.require_float(0));
  Shape shape;
  PINNACE_ASSIGN(const Window w, check_pool(n.view(), shape));
  if (w.rank > 2) return n.refuse(Rule::kRank, to_string(n.in(0)));
  const ImageShape s = image_shape(n.in(0));
  const int64_t planes = s.N * s.blocks();
  for (size_t d = 1; d < 3; ++d) {  // positions are 32-bit integers in kernels, and a dispatch must end
    if (w.kernel[d] > 1024 || w.stride[d] > 65535 || w.dilation[d] > 65535) {
      return n.refuse(Rule::kAttribute, "a window of thousands");
    }
  }
  if (w.in_size() == 0) return n.refuse(Rule::kAttribute, "an empty image");
  const bool count_pad = kind == 1 && n.view().attr_int("count_include_pad") != 0;
  const TensorId x = n.nc4hw4(0), y = n.make_nc4hw4();
  n.loops(loop_turns(w.kernel[1], loop_turns(w.kernel[2])));
  n.step(KernelId::pool, PoolConstants{.KIND = kind, .KH = w.kernel[1], .KW = w.kernel[2]},
         PoolParams{.H = w.in[1],
                    .W = w.in[2],
                    .OH = w.out[1],
                    .OW = w.out[2],
                    .stride_y = w.stride[1],
                    .stride_x = w.stride[2],
                    .pad_y = w.before[1],
                    .pad_x = w.before[2],
                    .dil_y = w.dilation[1],
                    .dil_x = w.dilation[2],
                    .count_pad = count_pad ? 1 : 0,
                    .end_y = w.in[1] + w.after[1],
                    .end_x = w.in[2] + w.after[2],
                    .blocks = s.blocks(),
                    .lanes = s.C % 4 ? s.C % 4 : 4,
                    .power = power},
         {x, y}, {groups_of(w.out[2], 8), groups_of(w.out[1], 8), static_cast<uint32_t>(planes)},
         static_cast<double>(planes * 4 * w.out_size() * w.taps()));
  return {};
}

Status whole(NodeLowering& n, bool mean) {
  PINNACE_TRY(n.require_float(0));
  const ImageShape s = image_shape(n.in(0));
  const int64_t planes = s.N * s.blocks();
  const TensorId x = n.nc4hw4(0), y = n.make_nc4hw4();
  n.loops(shared_turns(s.pixels) + kTreeTurns);
  n.step(KernelId::pool_global, PoolGlobalConstants{.MEAN = mean},
         PoolGlobalParams{.planes = planes, .pixels = s.pixels}, {x, y}, row_groups(planes),
         static_cast<double>(s.vectors() * 4));
  return {};
}

/// One bin is the whole image.
Status adaptive(NodeLowering& n, bool mean) {
  const Shape &x = n.in(0).shape, &y = n.out().shape;
  if (std::all_of(y.begin() + 2, y.end(), [](const Dim& d) { return d.size == 1; })) return whole(n, mean);
  PINNACE_TRY(n.require_float(0));
  if (x.size() > 4) return n.refuse(Rule::kRank, to_string(n.in(0)));
  const ImageShape s = image_shape(n.in(0));
  const int64_t H = x.size() > 3 ? x[2].size : 1, W = x.back().size;
  const int64_t OH = y.size() > 3 ? y[2].size : 1, OW = y.back().size;
  if (H * W == 0) return n.refuse(Rule::kAttribute, "an empty image");
  for (const auto& [in, out] : {std::pair(H, OH), std::pair(W, OW)}) {  // where bins begin is a 32-bit product
    if (out > 0 && in + 1 > INT32_MAX / (out + 1)) {
      return n.refuse(Rule::kAttribute, str_cat("this many bins of ", in, " elements: ", out));
    }
  }
  const int64_t planes = s.N * s.blocks();
  const TensorId from = n.nc4hw4(0), to = n.make_nc4hw4();
  // Where sizes are no multiples, a bin may have a part of a pixel at either end.
  const auto longest = [](int64_t in, int64_t out) { return in % out == 0 ? in / out : in / out + 2; };
  n.loops(loop_turns(longest(H, OH), loop_turns(longest(W, OW))));
  n.step(KernelId::pool_adaptive, PoolAdaptiveConstants{.MEAN = mean},
         PoolAdaptiveParams{.H = H, .W = W, .OH = OH, .OW = OW}, {from, to},
         {groups_of(OW, 8), groups_of(OH, 8), static_cast<uint32_t>(planes)},
         static_cast<double>(s.vectors() * 4 + planes * 4 * OH * OW));
  return {};
}

}  // namespace

Status lower_average_pool(NodeLowering& n) {
  return windowed(n, 1);
}
Status lower_max_pool(NodeLowering& n) {
  if (n.view().output_count() > 1) return n.refuse(Rule::kAttribute, "indices of the largest");
  return windowed(n, 0);
}
Status lower_lp_pool(NodeLowering& n) {
  return windowed(n, 2, static_cast<double>(n.view().attr_int("p")));
}
Status lower_global_average_pool(NodeLowering& n) {
  return whole(n, true);
}
Status lower_global_max_pool(NodeLowering& n) {
  return whole(n, false);
}
Status lower_adaptive_average_pool(NodeLowering& n) {
  return adaptive(n, true);
}
Status lower_adaptive_max_pool(NodeLowering& n) {
  if (n.view().output_count() > 1) return n.refuse(Rule::kAttribute, "indices of the largest");
  return adaptive(n, false);
}

/// One element of the result per invocation; dense, since boxes lie anywhere.
Status lower_roi_align(NodeLowering& n) {
  PINNACE_TRY(n.require_float(0));
  const NodeView& v = n.view();
  const int64_t down = v.attr_int("sampling_ratio"), given = v.attr_int("sampling_ratio_width");
  const int64_t across = given == -1 ? down : given;
  if (down > 64 || across > 64)
    return n.refuse(Rule::kAttribute, str_cat("a sampling ratio of ", std::max(down, across)));
  if (n.in(0).elements() == 0) return n.refuse(Rule::kAttribute, "an empty image");
  const Shape &x = n.in(0).shape, &y = n.out().shape;
  const int64_t count = n.out().elements();
  const TensorId image = n.dense(0), rois = n.dense(1), batch = n.dense(2), made = n.make_dense();
  n.step(KernelId::roi_align,
         RoiAlignConstants{.MAX = v.attr_string("mode") == "max",
                           .HALF = v.attr_string("coordinate_transformation_mode") == "half_pixel",
                           .EDGE = v.attr_string("outside") == "edge"},
         RoiAlignParams{.count = count,
                        .N = x[0].size,
                        .C = x[1].size,
                        .H = x[2].size,
                        .W = x[3].size,
                        .OH = y[2].size,
                        .OW = y[3].size,
                        .ratio_y = down,
                        .ratio_x = across,
                        .scale = v.attr_float("spatial_scale")},
         {image, rois, batch, made, n.error_record()}, line_groups(count, 64), static_cast<double>(count) * 64);
  return {};
}

}  // namespace pinnace::gpu
