// How the CPU back end keeps values between its own kernels. The graph knows one layout, dense row-major; convolutions
// and what lies between them work on NHWC-packed tensors: channels last, pixels padded to whole registers (8 channels),
// with a border of zeros where a convolution reads beyond the edge.
#pragma once

#include <algorithm>

#include "ops/op.h"

namespace pinnace::cpu {

/// Pixels of zeros (quantised: zero points) around each item of the batch.
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
struct NhwcSizes {
  int64_t n, c, h, w;
};
inline bool has_nhwc_sizes(const TensorType& type) {
  return type.rank() == 3 || type.rank() == 4;
}
inline NhwcSizes nhwc_sizes(const TensorType& type) {
  const Shape& s = type.shape;
  return {s[0].size, s[1].size, type.rank() == 4 ? s[2].size : 1, s.back().size};
}

/// Dense or NHWC-packed: element (n, c, y, x) stands at ((n * H' + top + y) * W' + left + x) * pitch + c with H' and W'
/// the sizes with their borders. Elements of a pixel from c on are of no value, and may be anything.
struct Layout {
  bool nhwc = false;
  int64_t pitch = 0;
  Border border;
  bool operator==(const Layout&) const = default;
};

/// Elements between pixels of `channels` channels. Few channels stand close, so that a row of a kernel is one block;
/// others start at multiples of 8, so that kernels store whole registers. Pixels whose distance is a multiple of some
/// lines fall on few sets of the first-level cache, and push each other out: those of many channels are kept an odd
/// number of lines apart (Zen 4: 105 instead of 70 GFLOP/s in ResNet-50's 1x1 convolutions of 1024 channels, 13 instead
/// of 15.5 us in MobileNetV2's depthwise ones of 384).
constexpr int64_t nhwc_pitch(int64_t channels, int64_t pixels) {
  if (channels < 8 || pixels == 1) return channels;
  return (channels + 7) / 8 * 8 + (channels >= 256 && channels % 64 == 0 ? 16 : 0);
}

/// The same of NHWC-packed tensors of halves: as many bytes apart.
constexpr int64_t nhwc_pitch_f16(int64_t channels, int64_t pixels) {
  if (channels < 8 || pixels == 1) return channels;
  return (channels + 7) / 8 * 8 + (channels >= 512 && channels % 128 == 0 ? 32 : 0);
}

/// The same of 8-bit NHWC-packed tensors. Up to 4 channels are one unit of a dot product, more than 8 are padded to
/// whole registers.
constexpr int64_t nhwc_pitch_i8(int64_t channels) {
  const int64_t unit = channels <= 4 ? 4 : channels <= 8 ? 8 : 16;
  return (channels + unit - 1) / unit * unit + (channels % 1024 == 0 ? 64 : 0);
}
/// Kernels of 8-bit NHWC-packed tensors may read this far beyond the last pixel.
inline constexpr int64_t kNhwcSlackI8 = 64;

/// Types that 8-bit NHWC-packed tensors hold: quantised per tensor.
inline bool fits_nhwc_i8(const TensorType& type) {
  return (type.dtype == DType::kI8 || type.dtype == DType::kU8) && type.quantized() && type.quantization->axis < 0;
}
/// What is added to a stored integer of an 8-bit tensor where it is NHWC-packed.
inline int32_t nhwc_offset(DType dtype) {
  return dtype == DType::kI8 ? 128 : 0;
}
/// The byte of real zero in an 8-bit NHWC-packed tensor of that type; of 0 where it is not quantised.
inline uint8_t nhwc_zero(const TensorType& type) {
  const int32_t zero = type.quantized() ? type.quantization->zero_points[0] : 0;
  return static_cast<uint8_t>(zero + nhwc_offset(type.dtype));
}

/// NHWC-packed, of that type, without border.
inline Layout nhwc_layout(const TensorType& type) {
  const NhwcSizes s = nhwc_sizes(type);
  const int bits = dtype_bits(type.dtype);
  const int64_t pixels = s.h * s.w;
  return {true,
          bits == 8    ? nhwc_pitch_i8(s.c)
          : bits == 16 ? nhwc_pitch_f16(s.c, pixels)
                       : nhwc_pitch(s.c, pixels),
          {}};
}

/// An NHWC-packed tensor as kernels see it: strides in elements; `at` is pixel (0, 0) of batch item 0.
template <class T>
struct NhwcOf {
  T* at;
  NhwcSizes size;
  ptrdiff_t pitch, row, step;  ///< step: from batch item to batch item
};
using NhwcF32 = NhwcOf<float>;
using NhwcI8 = NhwcOf<uint8_t>;

inline int64_t layout_bytes(const TensorType& type, const Layout& layout) {
  if (!layout.nhwc) return type.bytes();
  const NhwcSizes s = nhwc_sizes(type);
  const int64_t rows = s.h + layout.border.top + layout.border.bottom;
  const int64_t columns = s.w + layout.border.left + layout.border.right;
  const int64_t bytes = s.n * rows * columns * layout.pitch * dtype_bits(type.dtype) / 8;
  return dtype_bits(type.dtype) == 8 ? bytes + kNhwcSlackI8 : bytes;
}

/// Elements from row to row.
inline ptrdiff_t nhwc_row(const TensorType& type, const Layout& layout) {
  return (nhwc_sizes(type).w + layout.border.left + layout.border.right) * layout.pitch;
}

template <class T = float>
inline NhwcOf<T> nhwc_of(const TensorView& view, const Layout& layout) {
  const NhwcSizes s = nhwc_sizes(*view.type);
  const ptrdiff_t row = nhwc_row(*view.type, layout);
  const ptrdiff_t step = (s.h + layout.border.top + layout.border.bottom) * row;
  return {view.data<T>() + layout.border.top * row + layout.border.left * layout.pitch, s, layout.pitch, row, step};
}
inline NhwcI8 nhwc_i8_of(const TensorView& view, const Layout& layout) {
  return nhwc_of<uint8_t>(view, layout);
}

struct KernelContext;
/// Copies a dense value into an NHWC-packed one of its sizes; borders and padding are left. f32, f16 or fits_nhwc_i8().
void to_nhwc(const KernelContext& context, const TensorView& dense, const TensorView& packed, const Layout& layout);
/// The same of rows [first, last), counted through all batch items, on the calling thread.
void to_nhwc_rows(const TensorView& dense, const TensorView& packed, const Layout& layout, int64_t first, int64_t last);
void to_dense(const KernelContext& context, const TensorView& packed, const Layout& layout, const TensorView& dense);
/// Zeros (quantised: zero points) around every item of the batch.
void clear_border(const TensorView& packed, const Layout& layout);

}  // namespace pinnace::cpu
