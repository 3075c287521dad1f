// Splits of quantize_linear, dequantize_linear and dynamic_quantize_linear.
#include "backends/gpu/quantize/params.h"
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
namespace {

/// Between dense tensors of elements of so many bytes, whose scale goes by what is outside of `inner`.
void split_rows(Splitter& c, Field count, Field inner_field, int64_t slices, int64_t inner, int64_t from_bytes,
                int64_t to_bytes) {
  split_inner(c, inner, {{0, slices, from_bytes}, {2, slices, to_bytes}}, [=](Step& s, int64_t n) {
    set_line(s, count, slices * n);
    set(s, inner_field, n);
  });
}

}  // namespace

/// Scales go by channel or by a place in a row; with one scale anything goes.
void split_quantize(Splitter& c) {
  using P = QuantizeParams;
  const P& params = c.params<P>();
  const Field counted = PINNACE_FIELD(P, count);
  const int64_t count = params.count, inner = params.inner, scales = params.scales,
                form = c.constants<QuantizeConstants>().FORM;
  if (form == 0) {
    const int64_t unit = scales == 1 ? 1 : inner * scales;
    c.add(count / unit, {run(unit * c.element()), kWhole, run(unit * 4)},
          [=](Step& s, int64_t, int64_t n) { set_line(s, counted, n * unit); });
    if (unit > 1) split_rows(c, counted, PINNACE_FIELD(P, inner), count / inner, inner, c.element(), 4);
    return;
  }
  const int64_t channels = params.channels, blocks = params.blocks, pixels = params.pixels, planes = count / pixels;
  const bool rows = form == 1;
  if (planes > blocks) {
    c.add(planes / blocks,
          {run((rows ? channels : blocks * 4) * pixels * c.element()), kWhole, run(blocks * pixels * 4)},
          [=](Step& s, int64_t, int64_t n) { set_line(s, counted, n * blocks * pixels); });
  } else if (scales == 1) {
    c.add(planes, {run(4 * pixels * c.element()), kWhole, run(pixels * 4)}, [=](Step& s, int64_t first, int64_t n) {
      set_line(s, counted, n * pixels);
      s.params<P>().channels = std::min(channels - 4 * first, 4 * n);
      s.params<P>().blocks = n;
    });
  }
  const int64_t lines = rows ? planes / blocks * channels : planes;
  split_inner(c, pixels, {{0, lines, (rows ? 1 : 4) * c.element()}, {2, planes, 4}}, [=](Step& s, int64_t n) {
    set_line(s, counted, planes * n);
    s.params<P>().pixels = n;
  });
}

void split_dequantize(Splitter& c) {
  using P = DequantizeParams;
  const P& params = c.params<P>();
  const Field counted = PINNACE_FIELD(P, count);
  const int64_t count = params.count, inner = params.inner, scales = params.scales;
  const int64_t blocks = params.blocks, pixels = params.pixels;
  const bool rows = c.constants<DequantizeConstants>().FORM == 0;
  const int64_t unit = scales == 1 ? 1 : rows ? inner * scales : blocks * pixels;
  const int64_t made = rows ? c.element() : c.vector();
  c.add(count / unit, {run(unit * 4), kWhole, run(unit * made)},
        [=](Step& s, int64_t, int64_t n) { set_line(s, counted, n * unit); });
  if (rows && unit > 1) split_rows(c, counted, PINNACE_FIELD(P, inner), count / inner, inner, 4, made);
  if (rows) return;
  split_inner(c, pixels, {{0, count / pixels, 4}, {2, count / pixels, made}}, [=](Step& s, int64_t n) {
    set_line(s, counted, count / pixels * n);
    s.params<P>().pixels = n;
  });
}

void split_dynamic_quantize(Splitter& c) {
  if (c.constants<DynamicQuantizeConstants>().STAGE != 2) return;  // before the last stage, the range of all
  split_items(c, PINNACE_FIELD(DynamicQuantizeParams, count), {run(c.element()), kWhole, run(4)});
}

}  // namespace pinnace::gpu::splitting
