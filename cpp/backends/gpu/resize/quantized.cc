// Resize of quantised images, with the reference's sums of 64-bit floats; the nearest pixel is picked as a pool of one.
#include "backends/gpu/pool/pick.h"
#include "backends/gpu/quantize/thresholds.h"
#include "backends/gpu/resize/params.h"
#include "backends/gpu/resize/resize.h"

namespace pinnace::gpu {
namespace {

/// Of one output of a resize, which one invocation makes: a dispatch must end.
constexpr int64_t kMostTaps = 1 << 16;

}  // namespace

Status lower_quantized_resize(NodeLowering& n) {
  ImageResize r;
  PINNACE_TRY(describe_resize(n, r));
  if (r.spec.mode == ResizeMode::kNearest) {
    std::array<std::vector<int64_t>, 2> places;
    for (size_t d = 0; d < 2; ++d) {
      for (const ResizeTap& tap : r.taps[d].all) places[d].push_back(tap.index);
    }
    return pick_places(n, places[0], places[1]);
  }
  PINNACE_TRY(check_scales(n));
  if (!r.rows_first) return n.refuse(Rule::kAttribute, "columns before rows");
  if (r.taps[0].count * r.taps[1].count > kMostTaps) {
    return n.refuse(Rule::kAttribute, str_cat(r.taps[0].count * r.taps[1].count, " taps"));
  }
  const Shape &in = n.in(0).shape, &out = n.out().shape;
  const TensorType x = n.in(0), y = n.out();
  const std::array<ResizeTapList, 2> taps = r.taps;
  const size_t count = taps[0].all.size() + taps[1].all.size();
  const std::string sizes = str_cat(" of ", to_string(x), " to ", to_string(y));
  const TensorId numbers =
      n.size_table(str_cat("numbers", sizes), static_cast<int64_t>(512 + count) * 2, [=](std::span<float> to) {
        for (int64_t i = 0; i < 256; ++i) put(to, static_cast<size_t>(i), real_of(x, i));
        put_thresholds(to, 256, y, [](double value) { return static_cast<float>(value); });
        put(to, 511, 0.0);
        size_t at = 512;
        for (const ResizeTapList& list : taps) {
          for (const ResizeTap& tap : list.all) put(to, at++, tap.weight);
        }
        return Status();
      });
  const TensorId places = n.size_table(str_cat("places", sizes), static_cast<int64_t>(count), [=](std::span<float> to) {
    size_t at = 0;
    for (const ResizeTapList& list : taps) {
      for (const ResizeTap& tap : list.all) to[at++] = std::bit_cast<float>(tap.index);
    }
    return Status();
  });
  const TensorId from = n.nc4hw4(0), to = n.make_nc4hw4();
  n.loops(loop_turns(4, loop_turns(taps[1].count, loop_turns(taps[0].count)) + kByteSearchTurns));
  n.step(KernelId::int8_resize, Int8ResizeConstants{.TAPS_Y = taps[0].count, .TAPS_X = taps[1].count},
         Int8ResizeParams{.H = in[2].size, .W = in[3].size, .OH = out[2].size, .OW = out[3].size},
         {from, numbers, places, to},
         {groups_of(out[3].size, 8), groups_of(out[2].size, 8), static_cast<uint32_t>(r.planes)},
         64.0 * static_cast<double>(r.planes * out[2].size * out[3].size * taps[0].count * taps[1].count));
  return {};
}

}  // namespace pinnace::gpu
