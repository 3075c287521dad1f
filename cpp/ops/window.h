// Window: where the taps of a convolution or a pooling fall. Reads kernel sizes, strides, dilations, pads and auto_pad
// once and gives the sizes of the result; one to three spatial dimensions, held as three.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "ops/lines.h"

namespace pinnace {

/// Spatial geometry. Dimension i of `rank` is entry i + 3 - rank of every array; entries before that are neutral (sizes
/// 1, stride 1, no padding), so that code may always loop over three. Sizes are Dim::kUnknown where a shape rule does
/// not know them, and so are pads that follow from them.
struct Window {
  int rank = 0;
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1};
  std::array<int64_t, 3> before{}, after{};

  /// INT64_MAX where there are more: a pool's kernel may have sizes of up to 2^31.
  int64_t taps() const {
    int64_t plane, all;
    if (__builtin_mul_overflow(kernel[1], kernel[2], &plane) || __builtin_mul_overflow(kernel[0], plane, &all)) {
      return std::numeric_limits<int64_t>::max();
    }
    return all;
  }
  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
  /// Output positions o in [first, last) of dimension d whose tap k reads inside the input, at o * stride + offset.
  struct Span {
    int64_t first, last, offset;
  };
  Span span(int d, int64_t k) const {
    const int64_t offset = k * dilation[d] - before[d];
    const int64_t first = offset >= 0 ? 0 : (-offset + stride[d] - 1) / stride[d];
    const int64_t last = offset >= in[d] ? 0 : std::min(out[d], (in[d] - 1 - offset) / stride[d] + 1);
    return {std::min(first, last), last, offset};
  }
};

/// Attributes that window_of reads; auto_pad is "notset", "same_upper", "same_lower" or "valid". strides and dilations
/// default to 1, pads (all begins, then all ends) to 0. An operator may lack any of them.
inline constexpr AttrDef kAutoPadAttr = string_attr("auto_pad", "notset");
inline constexpr AttrDef kPadsAttr = ints_attr("pads"), kStridesAttr = ints_attr("strides");
inline constexpr AttrDef kDilationsAttr = ints_attr("dilations");

/// Geometry of x [N, C, spatial...] under a kernel of `kernel` (one per spatial dimension; unknown sizes are allowed in
/// shape rules). out = floor((in + pads - dilation * (kernel - 1) - 1) / stride) + 1, or with ceil_mode rounded up,
/// less a last window that would start beyond the input and its leading padding. same_*: out = ceil(in / stride).
///
/// kInvalidArgument: lists of the wrong length; sizes, strides or dilations below 1 or of 2^31 and more; negative pads;
/// pads beside auto_pad; a window larger than the padded input.
Result<Window> window_of(const NodeView& node, const Shape& x, std::span<const Dim> kernel, bool ceil_mode);

/// The attributes alone, without input and output sizes; pads of same_* are left 0.
Result<Window> window_attributes(const NodeView& node, std::span<const Dim> kernel);

/// kernel_shape as Dims, checked to have one entry per spatial dimension of x.
Result<Shape> kernel_shape_of(const NodeView& node, const TensorType& x);

/// Dimension of the result: its size where known; x's own dimension, a symbol perhaps, where the window keeps every
/// size; else unknown.
Dim window_dim(const Window& window, const NodeView& node, const Shape& x, int spatial);

}  // namespace pinnace
