// Between dense values and images; zeros around images.
#include "backends/cpu/layout.h"

#include <cstring>

#include "backends/cpu/kernel.h"

namespace pinnace {
namespace {

/// Pixels that are gathered or scattered at a time: their lines stay in the nearest cache while the planes pass by.
constexpr int64_t kPixels = 16;

template <class T, class F>
void for_rows(const KernelContext& context, const ImageOf<T>& image, F f) {
  const int64_t rows = image.size.n * image.size.h;
  const int64_t each = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, image.size.w * image.size.c));
  context.parallel((rows + each - 1) / each, [&](int64_t t) {
    for (int64_t u = t * each; u < std::min(rows, (t + 1) * each); ++u) f(u / image.size.h, u % image.size.h);
  });
}

/// f(element of the dense value, element of the image) for all of them, both in their order in memory by turns.
template <class T, class F>
void for_pairs(const KernelContext& context, T* dense, const ImageOf<T>& image, F f) {
  const ImageSizes& s = image.size;
  for_rows(context, image, [&](int64_t n, int64_t y) {
    T* const from = dense + (n * s.c * s.h + y) * s.w;
    T* const row = image.at + n * image.step + y * image.row;
    for (int64_t first = 0; first < s.w; first += kPixels) {
      const int64_t last = std::min(s.w, first + kPixels);
      for (int64_t c = 0; c < s.c; ++c) {
        T* const plane = from + c * s.h * s.w;
        for (int64_t x = first; x < last; ++x) f(plane[x], row[x * image.pitch + c]);
      }
    }
  });
}

template <class T>
void fill_border(const ImageOf<T>& image, const Border& border, T zero) {
  const auto clear = [zero](T* from, ptrdiff_t count) { std::fill_n(from, count, zero); };
  const ptrdiff_t before = border.left * image.pitch, after = border.right * image.pitch;
  for (int64_t n = 0; n < image.size.n; ++n) {
    T* first = image.at + n * image.step - before;  // the begin of pixel (0, 0)'s row
    clear(first - border.top * image.row, border.top * image.row);
    for (int64_t y = 0; y < image.size.h; ++y) {
      clear(first + y * image.row, before);
      clear(first + (y + 1) * image.row - after, after);
    }
    clear(first + image.size.h * image.row, border.bottom * image.row);
  }
}

}  // namespace

void to_image(const KernelContext& context, const TensorView& dense, const TensorView& image, const Layout& layout) {
  if (dense.dtype() == DType::kF32) {
    return for_pairs(context, dense.data<float>(), image_of(image, layout), [](float& a, float& b) { b = a; });
  }
  const auto flip = static_cast<uint8_t>(image_offset(dense.dtype()));
  for_pairs(context, dense.data<uint8_t>(), image_i8_of(image, layout),
            [flip](uint8_t& a, uint8_t& b) { b = a ^ flip; });
}

void to_dense(const KernelContext& context, const TensorView& image, const Layout& layout, const TensorView& dense) {
  if (dense.dtype() == DType::kF32) {
    return for_pairs(context, dense.data<float>(), image_of(image, layout), [](float& a, float& b) { a = b; });
  }
  const auto flip = static_cast<uint8_t>(image_offset(dense.dtype()));
  for_pairs(context, dense.data<uint8_t>(), image_i8_of(image, layout),
            [flip](uint8_t& a, uint8_t& b) { a = b ^ flip; });
}

void clear_border(const TensorView& image, const Layout& layout) {
  if (image.dtype() == DType::kF32) return fill_border(image_of(image, layout), layout.border, 0.0f);
  fill_border(image_i8_of(image, layout), layout.border, image_zero(*image.type));
}

}  // namespace pinnace
