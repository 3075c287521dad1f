// Geometry of convolutions over images, for every element type.
#pragma once

#include "backends/cpu/layout.h"
#include "ops/convolution.h"

namespace pinnace {

/// Channels per group.
struct ImageConv {
  Window window;
  int64_t groups, in_channels, out_channels;
  bool touching;  ///< the pixels of a kernel row are one block
  int64_t blocks() const { return touching ? window.kernel[1] : window.kernel[1] * window.kernel[2]; }
  int64_t block() const { return touching ? window.kernel[2] * in_channels : in_channels; }
  int64_t K() const { return blocks() * block(); }
};

inline ImageConv image_conv(const NodeView& node) {
  Shape y;
  const auto window = check_convolution(node, 2, y);
  assert(window.ok());
  const TensorType &x = node.input(0), &w = node.input(1);
  ImageConv c{*window, node.attr_int("group"), w.shape[1].size, 0, false};
  c.out_channels = w.shape[0].size / c.groups;
  const int64_t channels = image_sizes(x).c, pitch = image_layout(x).pitch;
  // In 8 bits elements that fill up a quad count as channels whose weights are zero.
  const int64_t filled = dtype_bits(x.dtype) == 8 ? (channels + 3) / 4 * 4 : channels;
  c.touching = c.groups == 1 && window->dilation[2] == 1 && window->kernel[2] > 1 && pitch == filled;
  return c;
}

/// Rows and columns that taps read beyond the input.
inline Border conv_border(const NodeView& node) {
  const Window w = image_conv(node).window;
  const auto beyond = [&](int d) {
    const int64_t last = (w.out[d] - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d] - w.before[d];
    return static_cast<int32_t>(std::max<int64_t>(0, last - w.in[d] + 1));
  };
  return {static_cast<int32_t>(w.before[1]), static_cast<int32_t>(w.before[2]), beyond(1), beyond(2)};
}

inline bool image_conv_takes(const NodeView& node) {
  if (!has_image_sizes(node.input(0)) || node.input(0).elements() == 0 || node.input(1).elements() == 0) return false;
  if (node.input(2 < node.input_count() && node.has_input(2) ? 2 : 1).elements() == 0) return false;
  Shape y;
  const auto window = check_convolution(node, 2, y);
  // A border as wide as the image would be mostly zeros.
  return window.ok() && window->out_size() > 0 && window->before[1] <= 64 && window->before[2] <= 64 &&
         window->after[1] <= 64 && window->after[2] <= 64;
}

}  // namespace pinnace
