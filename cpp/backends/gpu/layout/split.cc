// Splits of changes of layout, by images, planes or pixels.
#include "backends/gpu/layout/params.h"
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
namespace {

struct LayoutFields {
  Field count, channels, blocks, pixels, base;
};
template <class P>
constexpr LayoutFields fields_of() {
  return {PINNACE_FIELD(P, count), PINNACE_FIELD(P, channels), PINNACE_FIELD(P, blocks), PINNACE_FIELD(P, pixels),
          PINNACE_FIELD(P, base)};
}

/// A dense tensor and an NC4HW4 buffer of the same; `rows`: which binding is dense. Bytes of an element of it and
/// of a vector.
void split_layout(Splitter& c, const LayoutFields& f, size_t rows, int64_t row_bytes, int64_t image_bytes) {
  const int64_t count = c.get(f.count), channels = c.get(f.channels), blocks = c.get(f.blocks),
                pixels = c.get(f.pixels);
  const int64_t planes = count / pixels, from = c.get(f.base);
  std::vector<UnitWindow> image(2);
  // `each` elements of rows for a unit, `all` if the sub-dispatch has the last unit.
  const auto rows_of = [=](Step& s, int64_t each, int64_t first, int64_t n, int64_t all) {
    begin_at(s, rows, f.base, from + first * each, std::min(n * each, all - first * each), row_bytes);
  };
  if (planes > blocks) {
    image[1 - rows] = run(blocks * pixels * image_bytes);
    c.add(planes / blocks, image, [=](Step& s, int64_t first, int64_t n) {
      set_line(s, f.count, n * blocks * pixels);
      rows_of(s, channels * pixels, first, n, planes / blocks * channels * pixels);
    });
  } else {
    image[1 - rows] = run(pixels * image_bytes);
    c.add(planes, image, [=](Step& s, int64_t first, int64_t n) {
      set_line(s, f.count, n * pixels);
      set(s, f.channels, std::min(channels - 4 * first, 4 * n));
      set(s, f.blocks, n);
      rows_of(s, 4 * pixels, first, n, channels * pixels);
    });
  }
  const int64_t lines = planes / blocks * channels;
  if (lines == 1) {
    image[1 - rows] = run(image_bytes);
    c.add(pixels, image, [=](Step& s, int64_t first, int64_t n) {
      set_line(s, f.count, n);
      set(s, f.pixels, n);
      rows_of(s, 1, first, n, pixels);
    });
    return;
  }
  c.add_copies(pixels, [=](SubDispatch& p, int64_t first, int64_t n) {
    set_line(p, f.count, planes * n);
    set(p, f.pixels, n);
    set(p, f.base, 0);
    copy_region(p, rows, (from + first) * row_bytes, lines, pixels * row_bytes, n * row_bytes);
    copy_region(p, 1 - rows, first * image_bytes, planes, pixels * image_bytes, n * image_bytes);
  });
}

constexpr LayoutFields kFloats = fields_of<LayoutParams>(), kBytes = fields_of<Int8LayoutParams>();

}  // namespace

void split_int8_to_nc4hw4(Splitter& c) {
  split_layout(c, kBytes, 0, 4, 4);
}

void split_int8_to_dense(Splitter& c) {
  split_layout(c, kBytes, 1, 4, 4);
}

void split_enter(Splitter& c) {
  split_items(c, kFloats.count, {run(16), run(c.vector())});
}

void split_enter_nc4hw4(Splitter& c) {
  split_layout(c, kFloats, 0, 4, c.vector());
}

void split_nc4hw4_to_dense(Splitter& c) {
  split_layout(c, kFloats, 1, c.element(), c.vector());
}

void split_leave(Splitter& c) {
  split_items(c, kFloats.count, {run(c.vector()), run(16)});
}

void split_leave_nc4hw4(Splitter& c) {
  split_layout(c, kFloats, 1, 4, c.vector());
}

void split_dense_to_nc4hw4(Splitter& c) {
  split_layout(c, kFloats, 0, c.element(), c.vector());
}

}  // namespace pinnace::gpu::splitting
