// Pools of images.
#include "backends/gpu/lowering.h"
#include "ops/pool.h"

namespace pinnace::gpu {
namespace {

Status windowed(NodeLowering& n, bool mean) {
  PINNACE_TRY(n.require_float(0));
  Shape shape;
  PINNACE_ASSIGN(const Window w, check_pool(n.view(), shape));
  if (w.rank > 2) return n.refuse(Rule::kRank, to_string(n.in(0)));
  const ImageShape s = image_shape(n.in(0));
  const int64_t planes = s.N * s.blocks();
  if (planes > 65535) return n.refuse(Rule::kBytes, to_string(n.in(0)));
  if (w.in_size() == 0) return n.refuse(Rule::kAttribute, "an empty image");
  const bool count_pad = mean && n.view().attr_int("count_include_pad") != 0;
  const TensorId x = n.image(0), y = n.make_image();
  n.step(KernelId::pool, {mean ? 1 : 0, static_cast<int32_t>(w.kernel[1]), static_cast<int32_t>(w.kernel[2])},
         Push()
             .i(w.in[1]).i(w.in[2]).i(w.out[1]).i(w.out[2]).i(w.stride[1]).i(w.stride[2]).i(w.before[1]).i(w.before[2])
             .i(w.dilation[1]).i(w.dilation[2]).i(count_pad ? 1 : 0).i(w.in[1] + w.after[1]).i(w.in[2] + w.after[2])
             .i(s.blocks()).i(s.C % 4 ? s.C % 4 : 4),
         {x, y}, {groups_of(w.out[2], 8), groups_of(w.out[1], 8), static_cast<uint32_t>(planes)},
         static_cast<double>(planes * 4 * w.out_size() * w.taps()));
  return {};
}

Status whole(NodeLowering& n, bool mean) {
  PINNACE_TRY(n.require_float(0));
  const ImageShape s = image_shape(n.in(0));
  const int64_t planes = s.N * s.blocks();
  const TensorId x = n.image(0), y = n.make_image();
  n.step(KernelId::pool_global, {mean ? 1 : 0}, Push().i(planes).i(s.pixels), {x, y}, row_groups(planes),
         static_cast<double>(s.vectors() * 4));
  return {};
}

}  // namespace

Status lower_average_pool(NodeLowering& n) {
  return windowed(n, true);
}
Status lower_max_pool(NodeLowering& n) {
  if (n.view().output_count() > 1) return n.refuse(Rule::kAttribute, "indices of the largest");
  return windowed(n, false);
}
Status lower_global_average_pool(NodeLowering& n) {
  return whole(n, true);
}
Status lower_global_max_pool(NodeLowering& n) {
  return whole(n, false);
}
Status lower_adaptive_average_pool(NodeLowering& n) {
  PINNACE_TRY(n.require_float(0));
  const auto sizes = n.view().attr_ints("output_size");
  for (int64_t size : sizes) {
    if (size != 1) return n.refuse(Rule::kAttribute, str_cat("output_size ", list_text(sizes)));
  }
  return whole(n, true);
}

}  // namespace pinnace::gpu
