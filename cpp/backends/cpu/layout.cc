// Between dense values and images; zeros around images.
#include "backends/cpu/layout.h"

#include <cstring>

#include "backends/cpu/kernel.h"

namespace pinnace {
namespace {

/// Pixels that are gathered or scattered at a time: their lines stay in the nearest cache while the planes pass by.
constexpr int64_t kPixels = 16;

template <class F>
void for_rows(const KernelContext& context, const Image& image, F f) {
  const int64_t rows = image.size.n * image.size.h;
  const int64_t each = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, image.size.w * image.size.c));
  context.parallel((rows + each - 1) / each, [&](int64_t t) {
    for (int64_t u = t * each; u < std::min(rows, (t + 1) * each); ++u) f(u / image.size.h, u % image.size.h);
  });
}

}  // namespace

void to_image(const KernelContext& context, const float* dense, const Image& to) {
  const ImageSizes& s = to.size;
  for_rows(context, to, [&](int64_t n, int64_t y) {
    const float* from = dense + (n * s.c * s.h + y) * s.w;
    float* row = to.at + n * to.step + y * to.row;
    for (int64_t first = 0; first < s.w; first += kPixels) {
      const int64_t last = std::min(s.w, first + kPixels);
      for (int64_t c = 0; c < s.c; ++c) {
        const float* plane = from + c * s.h * s.w;
        for (int64_t x = first; x < last; ++x) row[x * to.pitch + c] = plane[x];
      }
    }
  });
}

void to_dense(const KernelContext& context, const Image& from, float* dense) {
  const ImageSizes& s = from.size;
  for_rows(context, from, [&](int64_t n, int64_t y) {
    float* to = dense + (n * s.c * s.h + y) * s.w;
    const float* row = from.at + n * from.step + y * from.row;
    for (int64_t first = 0; first < s.w; first += kPixels) {
      const int64_t last = std::min(s.w, first + kPixels);
      for (int64_t c = 0; c < s.c; ++c) {
        float* plane = to + c * s.h * s.w;
        for (int64_t x = first; x < last; ++x) plane[x] = row[x * from.pitch + c];
      }
    }
  });
}

void clear_border(const Image& image, const Border& border) {
  const auto clear = [](float* from, ptrdiff_t count) {
    std::memset(from, 0, sizeof(float) * static_cast<size_t>(count));
  };
  const ptrdiff_t before = border.left * image.pitch, after = border.right * image.pitch;
  for (int64_t n = 0; n < image.size.n; ++n) {
    float* first = image.at + n * image.step - before;  // the begin of pixel (0, 0)'s row
    clear(first - border.top * image.row, border.top * image.row);
    for (int64_t y = 0; y < image.size.h; ++y) {
      clear(first + y * image.row, before);
      clear(first + (y + 1) * image.row - after, after);
    }
    clear(first + image.size.h * image.row, border.bottom * image.row);
  }
}

}  // namespace pinnace
