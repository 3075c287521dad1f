// Resize of images by tables of taps that the shape rule's own formula gives.
#include "backends/gpu/lowering.h"
#include "ops/resize_map.h"

namespace pinnace::gpu {
namespace {

struct Tap {
  int32_t index;
  float weight;
};

/// `count` taps for every place of an axis.
struct Taps {
  int64_t count = 1;
  std::vector<Tap> all;
};

Result<Taps> taps_of(const NodeView& node, const ResizeSpec& spec, const ResizeAxis& axis) {
  Taps taps;
  if (spec.mode == ResizeMode::kNearest) {
    for (int64_t i = 0; i < axis.out; ++i) {
      const int64_t from = resize_nearest(spec, axis, resize_coordinate(spec, axis, i));
      taps.all.push_back({static_cast<int32_t>(from), 1.0f});
    }
    return taps;
  }
  PINNACE_ASSIGN(ResizeTaps found, resize_taps(spec, axis, node.label()));
  taps.count = found.count;
  for (int64_t i = 0; i < axis.out * found.count; ++i) {
    taps.all.push_back({static_cast<int32_t>(found.index[i]), static_cast<float>(found.weight[i])});
  }
  return taps;
}

}  // namespace

Status lower_resize(NodeLowering& n) {
  PINNACE_TRY(n.require_float(0));
  if (n.in(0).rank() != 4) return n.refuse(Rule::kRank, to_string(n.in(0)));
  for (int i = 1; i < n.view().input_count(); ++i) {
    if (n.has(i) && !n.constant(i)) return n.refuse(Rule::kConstant, "sizes, scales and roi");
  }
  PINNACE_ASSIGN(const ResizeSpec spec, resize_spec(n.view()));
  if (spec.coordinates == ResizeCoordinates::kTfCropAndResize) return n.refuse(Rule::kAttribute, "crop and resize");
  PINNACE_ASSIGN(const auto axes, resize_axes(n.view()));
  const Shape &in = n.in(0).shape, &out = n.out().shape;
  ResizeAxis both[2] = {{2, in[2].size, out[2].size}, {3, in[3].size, out[3].size}};
  for (const ResizeAxis& axis : axes) {
    if (axis.axis >= 2) {
      both[axis.axis - 2] = axis;
    } else if (!axis.identity(spec)) {
      return n.refuse(Rule::kAttribute, str_cat("axis ", axis.axis));
    }
  }
  const ImageShape s = image_shape(n.in(0));
  const int64_t planes = s.N * s.blocks();
  Taps taps[2];
  for (int d = 0; d < 2; ++d) {
    if (both[d].identity(spec)) {
      for (int64_t i = 0; i < both[d].out; ++i) taps[d].all.push_back({static_cast<int32_t>(i), 1.0f});
    } else {
      PINNACE_ASSIGN(taps[d], taps_of(n.view(), spec, both[d]));
    }
  }
  const int64_t count = static_cast<int64_t>(taps[0].all.size() + taps[1].all.size()) * 2;
  const Taps rows = taps[0], columns = taps[1];
  const TensorId table = n.words(str_cat("taps of ", to_string(n.in(0)), " to ", to_string(n.out())), count,
                                 [rows, columns](std::span<float> to) {
                                   size_t at = 0;
                                   for (const Taps* list : {&rows, &columns}) {
                                     for (const Tap& tap : list->all) {
                                       to[at++] = std::bit_cast<float>(tap.index);
                                       to[at++] = tap.weight;
                                     }
                                   }
                                   return Status();
                                 });
  const TensorId x = n.image(0), y = n.make_image();
  n.step(KernelId::resize, {static_cast<int32_t>(rows.count), static_cast<int32_t>(columns.count)},
         Push().i(in[2].size).i(in[3].size).i(out[2].size).i(out[3].size), {x, table, y},
         {groups_of(out[3].size, 8), groups_of(out[2].size, 8), static_cast<uint32_t>(planes)},
         static_cast<double>(planes * 4 * out[2].size * out[3].size * rows.count * columns.count));
  return {};
}

}  // namespace pinnace::gpu
