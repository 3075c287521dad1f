// Splits of resizes, by planes, and of sampling, by images, blocks of channels and places.
#include "backends/gpu/resize/params.h"
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
namespace {

template <class P>
constexpr ImageFields fields_of() {
  return {PINNACE_FIELD(P, H), PINNACE_FIELD(P, W), PINNACE_FIELD(P, OH), PINNACE_FIELD(P, OW)};
}

}  // namespace

void split_resize(Splitter& c) {
  split_planes(c, fields_of<ResizeParams>(), c.vector(), 2);
}

void split_grid_sample(Splitter& c) {
  using P = GridSampleParams;
  const P& params = c.params<P>();
  const Field count = PINNACE_FIELD(P, count);
  const int64_t S = c.element(), V = c.vector(), places = params.places, blocks = params.blocks;
  const int64_t image = params.H * params.W * V, N = params.count / (places * blocks);
  c.add(N, {run(blocks * image), run(places * 2 * S), run(blocks * places * V)},
        [=](Step& s, int64_t, int64_t n) { set_line(s, count, n * blocks * places); });
  c.add(blocks, {column(image, N, blocks * image), kWhole, column(places * V, N, blocks * places * V)},
        [=](Step& s, int64_t, int64_t n) {
          set_line(s, count, N * n * places);
          s.params<P>().blocks = n;
        });
  c.add(places, {kWhole, column(2 * S, N, places * 2 * S), column(V, N * blocks, places * V)},
        [=](Step& s, int64_t, int64_t n) {
          set_line(s, count, N * blocks * n);
          s.params<P>().places = n;
        });
}

void split_int8_resize(Splitter& c) {
  split_planes(c, fields_of<Int8ResizeParams>(), 4, 3);
}

}  // namespace pinnace::gpu::splitting
