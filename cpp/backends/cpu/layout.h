// How the CPU back end keeps values between its own kernels. The graph knows one layout, dense row-major; convolutions
// and what lies between them work on images: channels last, pixels padded to whole registers, a border of zeros where a
// convolution reads beyond the edge.
#pragma once

#include <algorithm>

#include "ops/op.h"

namespace pinnace {

/// Pixels of zeros around an image.
struct Border {
  int32_t top = 0, left = 0, bottom = 0, right = 0;
  bool none() const { return !(top | left | bottom | right); }
  void widen(const Border& other) {
    top = std::max(top, other.top);
    left = std::max(left, other.left);
    bottom = std::max(bottom, other.bottom);
    right = std::max(right, other.right);
  }
  bool operator==(const Border&) const = default;
};

/// Sizes of a value [N, C, H, W], or [N, C, W] with H = 1.
struct ImageSizes {
  int64_t n, c, h, w;
};
inline bool has_image_sizes(const TensorType& type) {
  return type.rank() == 3 || type.rank() == 4;
}
inline ImageSizes image_sizes(const TensorType& type) {
  const Shape& s = type.shape;
  return {s[0].size, s[1].size, type.rank() == 4 ? s[2].size : 1, s.back().size};
}

/// Dense, or an image: element (n, c, y, x) stands at ((n * H' + top + y) * W' + left + x) * pitch + c with H' and W'
/// the sizes with their borders. Elements of a pixel from c on are of no value, and may be anything.
struct Layout {
  bool image = false;
  int64_t pitch = 0;
  Border border;
  bool operator==(const Layout&) const = default;
};

/// Elements between pixels of `channels` channels. Few channels stand close, so that a row of a kernel is one block;
/// others start at multiples of 8, so that kernels store whole registers. Pixels at a distance of half a page or a
/// whole one would fall on the same lines of the first-level cache, and push each other out (Zen 4: 70 instead of 105
/// GFLOP/s in ResNet-50's 1x1 convolutions of 1024 channels): they stand a line further apart.
constexpr int64_t image_pitch(int64_t channels, int64_t pixels) {
  if (channels < 8 || pixels == 1) return channels;
  return (channels + 7) / 8 * 8 + (channels % 256 == 0 ? 16 : 0);
}

/// An image as kernels see it: strides in elements; `at` is pixel (0, 0) of image 0.
struct Image {
  float* at;
  ImageSizes size;
  ptrdiff_t pitch, row, step;  ///< step: from image to image
};

inline int64_t layout_bytes(const TensorType& type, const Layout& layout) {
  if (!layout.image) return type.bytes();
  const ImageSizes s = image_sizes(type);
  const int64_t rows = s.h + layout.border.top + layout.border.bottom;
  const int64_t columns = s.w + layout.border.left + layout.border.right;
  return s.n * rows * columns * layout.pitch * dtype_bits(type.dtype) / 8;
}

inline Image image_of(const TensorView& view, const Layout& layout) {
  const ImageSizes s = image_sizes(*view.type);
  const ptrdiff_t row = (s.w + layout.border.left + layout.border.right) * layout.pitch;
  const ptrdiff_t step = (s.h + layout.border.top + layout.border.bottom) * row;
  return {view.data<float>() + layout.border.top * row + layout.border.left * layout.pitch, s, layout.pitch, row, step};
}

struct KernelContext;
/// Copies a dense value into an image of its sizes; borders and padding are left.
void to_image(const KernelContext& context, const float* dense, const Image& to);
void to_dense(const KernelContext& context, const Image& from, float* dense);
/// Zeros around every image.
void clear_border(const Image& image, const Border& border);

}  // namespace pinnace
