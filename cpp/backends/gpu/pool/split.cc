// Splits of pools, by planes, rows and columns, and of roi_align, by boxes and channels.
#include "backends/gpu/pool/params.h"
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
namespace {

template <class P>
constexpr ImageFields fields_of() {
  return {PINNACE_FIELD(P, H), PINNACE_FIELD(P, W), PINNACE_FIELD(P, OH), PINNACE_FIELD(P, OW)};
}

}  // namespace

void split_pool(Splitter& c) {
  using P = PoolParams;
  const P& params = c.params<P>();
  const auto window = c.constants<PoolConstants>();
  split_planes(c, fields_of<P>(), c.vector(), 1, PINNACE_FIELD(P, blocks));
  WindowedStep v{c.vector(), c.groups(2), c.groups(2), {}, {1}};
  v.axes[1] =
      image_axis(c, fields_of<P>(), 1, window.KH, params.stride_y, PINNACE_FIELD(P, pad_y), PINNACE_FIELD(P, dil_y));
  v.axes[2] =
      image_axis(c, fields_of<P>(), 2, window.KW, params.stride_x, PINNACE_FIELD(P, pad_x), PINNACE_FIELD(P, dil_x));
  v.axes[1].end_field = PINNACE_FIELD(P, end_y);
  v.axes[2].end_field = PINNACE_FIELD(P, end_x);
  split_windows(c, v, [](Step& s, size_t d, int64_t n) { s.groups[2 - d] = groups_of(n, 8); });
}

void split_pool_adaptive(Splitter& c) {
  split_planes(c, fields_of<PoolAdaptiveParams>(), c.vector(), 1);
}

void split_int8_pool(Splitter& c) {
  split_planes(c, fields_of<Int8PoolParams>(), 4, 2);
}

void split_pool_global(Splitter& c) {
  using P = PoolGlobalParams;
  const P& params = c.params<P>();
  c.add(params.planes, {run(params.pixels * c.vector()), run(c.vector())}, [](Step& s, int64_t, int64_t n) {
    s.params<P>().planes = n;
    s.groups = row_groups(n);
  });
}

void split_roi_align(Splitter& c) {
  using P = RoiAlignParams;
  const P& params = c.params<P>();
  const Field count = PINNACE_FIELD(P, count);
  const int64_t S = c.element(), image = params.H * params.W, bin = params.OH * params.OW, box = params.C * bin;
  const int64_t boxes = params.count / box;
  c.add(boxes, {kWhole, run(4 * S), run(4), run(box * S)},
        [=](Step& s, int64_t, int64_t n) { set_line(s, count, n * box); });
  c.add(params.C, {column(image * S, params.N, params.C * image * S), kWhole, kWhole, column(bin * S, boxes, box * S)},
        [=](Step& s, int64_t, int64_t n) {
          set_line(s, count, boxes * n * bin);
          s.params<P>().C = n;
        });
}

}  // namespace pinnace::gpu::splitting
