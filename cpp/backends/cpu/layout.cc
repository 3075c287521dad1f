// Between dense and NHWC-packed tensors; zeros around them.
#include "backends/cpu/layout.h"

#include <cstring>

#include "backends/cpu/kernel.h"
#include "backends/cpu/move/strided_copy.h"

namespace pinnace::cpu {
namespace {

/// Pixels that are gathered or scattered at a time: their lines stay in the nearest cache while the planes pass by.
constexpr int64_t kPixels = 16;

/// f(first, last) for ranges that together are all rows of all batch items.
template <class T, class F>
void for_row_ranges(const KernelContext& context, const NhwcOf<T>& packed, F f) {
  const int64_t rows = packed.size.n * packed.size.h;
  const int64_t each = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, packed.size.w * packed.size.c));
  context.parallel((rows + each - 1) / each, [&](int64_t t) { f(t * each, std::min(rows, (t + 1) * each)); });
}

/// f(element of the dense value, element of the packed one) for all of a row, both in their order in memory by turns.
template <class T, class F>
void for_pairs(T* dense, const NhwcOf<T>& packed, int64_t n, int64_t y, F f) {
  const NhwcSizes& s = packed.size;
  T* const from = dense + (n * s.c * s.h + y) * s.w;
  T* const row = packed.at + n * packed.step + y * packed.row;
  for (int64_t first = 0; first < s.w; first += kPixels) {
    const int64_t last = std::min(s.w, first + kPixels);
    for (int64_t c = 0; c < s.c; ++c) {
      T* const plane = from + c * s.h * s.w;
      for (int64_t x = first; x < last; ++x) f(plane[x], row[x * packed.pitch + c]);
    }
  }
}

template <class T>
void fill_border(const NhwcOf<T>& packed, const Border& border, T zero) {
  const auto clear = [zero](T* from, ptrdiff_t count) { std::fill_n(from, count, zero); };
  const ptrdiff_t before = border.left * packed.pitch, after = border.right * packed.pitch;
  for (int64_t n = 0; n < packed.size.n; ++n) {
    T* first = packed.at + n * packed.step - before;  // the begin of pixel (0, 0)'s row
    clear(first - border.top * packed.row, border.top * packed.row);
    for (int64_t y = 0; y < packed.size.h; ++y) {
      clear(first + y * packed.row, before);
      clear(first + (y + 1) * packed.row - after, after);
    }
    clear(first + packed.size.h * packed.row, border.bottom * packed.row);
  }
}

/// Colour images: three planes into touching pixels, four pixels at a time.
void interleave_3(const float* from, int64_t plane, int64_t pixels, float* to) {
  using Four = float __attribute__((vector_size(16)));
  int64_t x = 0;
  for (; x + 4 <= pixels; x += 4, to += 12) {
    Four a, b, c;
    std::memcpy(&a, from + x, sizeof a);
    std::memcpy(&b, from + plane + x, sizeof b);
    std::memcpy(&c, from + 2 * plane + x, sizeof c);
    const Four ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Four first = __builtin_shufflevector(ab0, c, 0, 1, 4, 2);
    const Four second = __builtin_shufflevector(__builtin_shufflevector(ab0, c, 3, 5, 3, 5), ab1, 0, 1, 4, 5);
    const Four third = __builtin_shufflevector(__builtin_shufflevector(c, ab1, 2, 6, 7, 3), c, 0, 1, 2, 7);
    std::memcpy(to, &first, sizeof first);
    std::memcpy(to + 4, &second, sizeof second);
    std::memcpy(to + 8, &third, sizeof third);
  }
  for (; x < pixels; ++x, to += 3) {
    for (int c = 0; c < 3; ++c) to[c] = from[c * plane + x];
  }
}

/// Row y of batch item n, of elements of 16 bits; colour images have touching pixels.
void to_half_nhwc_row(uint16_t* dense, const NhwcOf<uint16_t>& to, int64_t n, int64_t y) {
  const NhwcSizes& s = to.size;
  if (s.c != 3 || to.pitch != 3) return for_pairs(dense, to, n, y, [](uint16_t& a, uint16_t& b) { b = a; });
  const uint16_t* __restrict from = dense + (n * 3 * s.h + y) * s.w;
  uint16_t* __restrict row = to.at + n * to.step + y * to.row;
  const int64_t plane = s.h * s.w;
  for (int64_t x = 0; x < s.w; ++x) {
    row[3 * x] = from[x];
    row[3 * x + 1] = from[plane + x];
    row[3 * x + 2] = from[2 * plane + x];
  }
}

}  // namespace

void to_nhwc_rows(const TensorView& dense, const TensorView& packed, const Layout& layout, int64_t first,
                  int64_t last) {
  if (dense.dtype() == DType::kF32) {
    const NhwcF32 to = nhwc_of(packed, layout);
    const NhwcSizes& s = to.size;
    for (int64_t u = first; u < last; ++u) {
      const int64_t n = u / s.h, y = u % s.h;
      const float* from = dense.data<float>() + (n * s.c * s.h + y) * s.w;
      float* row = to.at + n * to.step + y * to.row;
      if (s.c == 3 && to.pitch == 3) {
        interleave_3(from, s.h * s.w, s.w, row);
      } else {
        transpose_floats(from, s.h * s.w, row, to.pitch, s.c, s.w);
      }
    }
    return;
  }
  if (dense.dtype() == DType::kF16) {
    const auto to = nhwc_of<uint16_t>(packed, layout);
    for (int64_t u = first; u < last; ++u) to_half_nhwc_row(dense.data<uint16_t>(), to, u / to.size.h, u % to.size.h);
    return;
  }
  const NhwcI8 to = nhwc_i8_of(packed, layout);
  const auto flip = static_cast<uint8_t>(nhwc_offset(dense.dtype()));
  for (int64_t u = first; u < last; ++u) {
    for_pairs(dense.data<uint8_t>(), to, u / to.size.h, u % to.size.h,
              [flip](uint8_t& a, uint8_t& b) { b = a ^ flip; });
  }
}

void to_nhwc(const KernelContext& context, const TensorView& dense, const TensorView& packed, const Layout& layout) {
  for_row_ranges(context, nhwc_of(packed, layout),
                 [&](int64_t first, int64_t last) { to_nhwc_rows(dense, packed, layout, first, last); });
}

void to_dense(const KernelContext& context, const TensorView& packed, const Layout& layout, const TensorView& dense) {
  if (dense.dtype() == DType::kF32) {
    const NhwcF32 from = nhwc_of(packed, layout);
    const NhwcSizes& s = from.size;
    return for_row_ranges(context, from, [&](int64_t first, int64_t last) {
      for (int64_t u = first; u < last; ++u) {
        const int64_t n = u / s.h, y = u % s.h;
        const float* row = from.at + n * from.step + y * from.row;
        transpose_floats(row, from.pitch, dense.data<float>() + (n * s.c * s.h + y) * s.w, s.h * s.w, s.w, s.c);
      }
    });
  }
  if (dense.dtype() == DType::kF16) {
    const auto from = nhwc_of<uint16_t>(packed, layout);
    return for_row_ranges(context, from, [&](int64_t first, int64_t last) {
      for (int64_t u = first; u < last; ++u) {
        for_pairs(dense.data<uint16_t>(), from, u / from.size.h, u % from.size.h,
                  [](uint16_t& a, uint16_t& b) { a = b; });
      }
    });
  }
  const NhwcI8 from = nhwc_i8_of(packed, layout);
  const auto flip = static_cast<uint8_t>(nhwc_offset(dense.dtype()));
  for_row_ranges(context, from, [&](int64_t first, int64_t last) {
    for (int64_t u = first; u < last; ++u) {
      for_pairs(dense.data<uint8_t>(), from, u / from.size.h, u % from.size.h,
                [flip](uint8_t& a, uint8_t& b) { a = b ^ flip; });
    }
  });
}

void clear_border(const TensorView& packed, const Layout& layout) {
  if (packed.dtype() == DType::kF32) return fill_border(nhwc_of(packed, layout), layout.border, 0.0f);
  if (packed.dtype() == DType::kF16) return fill_border(nhwc_of<uint16_t>(packed, layout), layout.border, uint16_t{0});
  fill_border(nhwc_i8_of(packed, layout), layout.border, nhwc_zero(*packed.type));
}

}  // namespace pinnace::cpu
