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

/// Colour images: three planes into touching pixels, four pixels at a time.
void interleave_3(const float* from, int64_t plane, int64_t pixels, float* to) {
  using Four = float __attribute__((vector_size(16)));
  using Order = int32_t __attribute__((vector_size(16)));
  int64_t x = 0;
  for (; x + 4 <= pixels; x += 4, to += 12) {
    Four a, b, c;
    std::memcpy(&a, from + x, sizeof a);
    std::memcpy(&b, from + plane + x, sizeof b);
    std::memcpy(&c, from + 2 * plane + x, sizeof c);
    const Four ab0 = __builtin_shuffle(a, b, Order{0, 4, 1, 5}), ab1 = __builtin_shuffle(a, b, Order{2, 6, 3, 7});
    const Four first = __builtin_shuffle(ab0, c, Order{0, 1, 4, 2});
    const Four second = __builtin_shuffle(__builtin_shuffle(ab0, c, Order{3, 5, 3, 5}), ab1, Order{0, 1, 4, 5});
    const Four third = __builtin_shuffle(__builtin_shuffle(c, ab1, Order{2, 6, 7, 3}), c, Order{0, 1, 2, 7});
    std::memcpy(to, &first, sizeof first);
    std::memcpy(to + 4, &second, sizeof second);
    std::memcpy(to + 8, &third, sizeof third);
  }
  for (; x < pixels; ++x, to += 3) {
    for (int c = 0; c < 3; ++c) to[c] = from[c * plane + x];
  }
}

}  // namespace

void to_image(const KernelContext& context, const float* dense, const Image& to) {
  const ImageSizes& s = to.size;
  for_rows(context, to, [&](int64_t n, int64_t y) {
    const float* from = dense + (n * s.c * s.h + y) * s.w;
    float* row = to.at + n * to.step + y * to.row;
    if (s.c == 3 && to.pitch == 3) return interleave_3(from, s.h * s.w, s.w, row);
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
