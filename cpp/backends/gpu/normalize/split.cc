// Splits of normalisations.
#include "backends/gpu/normalize/params.h"
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
void split_batch_norm(Splitter& c) {
  using P = BatchNormParams;
  const Field count = PINNACE_FIELD(P, count);
  const P& params = c.params<P>();
  const int64_t S = c.element(), channels = params.channels, inner = params.inner, slices = params.count / inner;
  const int64_t image = channels * inner;
  if (slices > channels) {
    c.add(slices / channels, {run(image * S), kWhole, kWhole, kWhole, kWhole, run(image * S)},
          [=](Step& s, int64_t, int64_t n) { set_line(s, count, n * image); });
  } else {
    c.add(channels, {run(inner * S), run(S), run(S), run(S), run(S), run(inner * S)}, [=](Step& s, int64_t, int64_t n) {
      set_line(s, count, n * inner);
      s.params<P>().channels = n;
    });
  }
  split_inner(c, inner, {{0, slices, S}, {5, slices, S}}, [=](Step& s, int64_t n) {
    set_line(s, count, slices * n);
    s.params<P>().inner = n;
  });
}

void split_lrn(Splitter& c) {
  using P = LrnParams;
  const Field count = PINNACE_FIELD(P, count);
  const P& params = c.params<P>();
  const int64_t S = c.element(), image = params.channels * params.inner;
  c.add(params.count / image, {run(image * S), run(image * S)},
        [=](Step& s, int64_t, int64_t n) { set_line(s, count, n * image); });
  const int64_t slices = params.count / params.inner;
  split_inner(c, params.inner, {{0, slices, S}, {1, slices, S}}, [=](Step& s, int64_t n) {
    set_line(s, count, slices * n);
    s.params<P>().inner = n;
  });
}

void split_normalize(Splitter& c) {
  using P = NormalizeParams;
  const P& params = c.params<P>();
  const int64_t rows = params.rows, size = params.size, period = params.period, inner = params.inner;
  const int64_t bytes = c.element();
  const auto set_rows = [](Step& s, int64_t n) {
    s.params<P>().rows = n;
    s.groups = row_groups(n);
  };
  const auto constants = c.constants<NormalizeConstants>();
  const bool has_scale = constants.SCALE != 0, has_bias = constants.BIAS != 0;
  const UnitWindow scale = has_scale ? kWhole : kUnread, bias = has_bias ? kWhole : kUnread;
  if (period == 1 || rows > period) {
    c.add(rows / period, {run(period * size * bytes), scale, bias, run(period * size * bytes)},
          [=](Step& s, int64_t, int64_t n) { set_rows(s, n * period); });
  } else if (size % inner == 0 && params.channels == period * (size / inner)) {  // each row has channels of its own
    const UnitWindow own = run(size / inner * bytes);
    c.add(rows, {run(size * bytes), has_scale ? own : kUnread, has_bias ? own : kUnread, run(size * bytes)},
          [=](Step& s, int64_t, int64_t n) { set_rows(s, n); });
  }
}

}  // namespace pinnace::gpu::splitting
