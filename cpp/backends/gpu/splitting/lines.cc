// Splits that several families share: elements in a line, slices along an axis, planes of images, runs between places.
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {

void split_items(Splitter& c, Field count, std::vector<UnitWindow> windows) {
  c.add(c.get(count), std::move(windows), [count](Step& s, int64_t, int64_t n) { set_line(s, count, n); });
}

void split_vectors(Splitter& c, bool by_image, const VectorFields& f,
                   const std::function<std::vector<UnitWindow>(int64_t vectors, int64_t channels)>& windows) {
  const int64_t count = c.get(f.count), pixels = c.get(f.pixels), blocks = c.get(f.blocks);
  if (!by_image || count <= pixels) return split_items(c, f.count, windows(1, 0));
  const int64_t planes = count / pixels;
  if (planes > blocks) {
    const int64_t each = c.get(f.images);
    c.add(planes / blocks, windows(blocks * pixels, each > 1 ? blocks : 0), [=](Step& s, int64_t, int64_t n) {
      set_line(s, f.count, n * blocks * pixels);
      if (each > 1) set(s, f.images, n);
    });
    return;
  }
  // The last block of the image, whose lanes may be no channels, stays the last one.
  c.add(planes, windows(pixels, 1), [=](Step& s, int64_t first, int64_t n) {
    set_line(s, f.count, n * pixels);
    set(s, f.blocks, blocks - first);
  });
}

void split_runs(Splitter& c, const RunFields& f, size_t from_binding, size_t to_binding, int64_t bytes,
                std::vector<UnitWindow> others) {
  const int64_t count = c.get(f.count), length = c.get(f.run), from_image = c.get(f.from_image), from = c.get(f.from);
  const int64_t to_image = c.get(f.to_image), to = c.get(f.to);
  if (count > length) {
    c.add(count / length, std::move(others), [=](Step& s, int64_t first, int64_t n) {
      set_line(s, f.count, n * length);
      begin_at(s, from_binding, f.from, first * from_image + from, (n - 1) * from_image + length, bytes);
      begin_at(s, to_binding, f.to, first * to_image + to, (n - 1) * to_image + length, bytes);
    });
    return;
  }
  c.add(count, std::move(others), [=](Step& s, int64_t first, int64_t n) {
    set_line(s, f.count, n);
    set(s, f.run, n);
    begin_at(s, from_binding, f.from, from + first, n, bytes);
    begin_at(s, to_binding, f.to, to + first, n, bytes);
  });
}

void split_slices(Splitter& c, const SliceFields& f, std::vector<UnitWindow> windows,
                  const std::vector<int64_t>& lengths) {
  const int64_t size = c.get(f.size), inner = c.get(f.inner), outer = c.get(f.slices) / inner;
  std::vector<UnitWindow> columns = windows;
  for (size_t b = 0; b < columns.size(); ++b) {
    if (columns[b].step == 0) continue;
    const int64_t length = lengths.empty() ? size : lengths[b], bytes = columns[b].step / (length * inner);
    columns[b] = column(bytes, outer * length, inner * bytes);
  }
  c.add(outer, std::move(windows), [f, inner](Step& s, int64_t, int64_t n) {
    set(s, f.slices, n * inner);
    s.groups = row_groups(n * inner);
  });
  c.add(inner, std::move(columns), [f, outer](Step& s, int64_t, int64_t n) {
    set(s, f.slices, outer * n);
    set(s, f.inner, n);
    s.groups = row_groups(outer * n);
  });
}

void split_planes(Splitter& c, const ImageFields& f, int64_t bytes, size_t result, Field blocks) {
  const int64_t in = c.get(f.H) * c.get(f.W) * bytes, out = c.get(f.OH) * c.get(f.OW) * bytes, count = c.groups(2);
  const auto windows = [&](int64_t n) {
    std::vector<UnitWindow> all(result + 1);
    all[0] = run(n * in);
    all[result] = run(n * out);
    return all;
  };
  const int64_t each = blocks ? c.get(blocks) : 1;
  if (blocks && count <= each) {
    c.add(count, windows(1), [=](Step& s, int64_t first, int64_t n) {
      planes_in_z(s, n);
      set(s, blocks, each - first);
    });
    return;
  }
  c.add(count / each, windows(each), [=](Step& s, int64_t, int64_t n) { planes_in_z(s, n * each); });
}

}  // namespace pinnace::gpu::splitting
