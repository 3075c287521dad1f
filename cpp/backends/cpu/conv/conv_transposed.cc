// The geometry of conv_transpose's phases.
#include "backends/cpu/conv/conv_transposed.h"

#include <numeric>

namespace pinnace::cpu {

PhaseTaps taps_of(const Window& w, size_t d, int64_t first) {
  const int64_t stride = w.stride[d], dilation = w.dilation[d], common = std::gcd(stride, dilation);
  PhaseTaps t{0, 0, stride / common, 0, dilation / common};
  const int64_t at = first + w.before[d];  // tap k reads x at (at - k * dilation) / stride
  for (int64_t k = 0; k < std::min(t.tap_step, w.kernel[d]); ++k) {
    if ((at - k * dilation) % stride != 0) continue;
    t.count = (w.kernel[d] - 1 - k) / t.tap_step + 1;
    t.last_tap = k + (t.count - 1) * t.tap_step;
    t.offset = (at - t.last_tap * dilation) / stride;
    return t;
  }
  return t;
}

Transposed transposed(const KernelNode& node) {
  const auto window = check_conv_transpose(node);
  assert(window.ok());
  const TensorType& w = node.input(1);
  const int64_t groups = node.attr_int("group");
  return {*window, groups, w.shape[0].size / groups, w.shape[1].size};
}

Border transposed_border(const KernelNode& node) {
  const Transposed t = transposed(node);
  int64_t before[3] = {}, after[3] = {};
  for (size_t d : {1, 2}) {
    for (int64_t first = 0; first < t.phases(d); ++first) {
      const PhaseTaps taps = taps_of(t.window, d, first);
      if (taps.count == 0) continue;
      const int64_t last = (t.window.in[d] - 1 - first) / t.window.stride[d];
      before[d] = std::max(before[d], -taps.offset);
      after[d] = std::max(after[d], last + taps.offset + (taps.count - 1) * taps.apart - t.window.out[d] + 1);
    }
  }
  return {static_cast<int32_t>(before[1]), static_cast<int32_t>(before[2]), static_cast<int32_t>(after[1]),
          static_cast<int32_t>(after[2])};
}

bool transposed_takes(const KernelNode& node) {
  if (!has_nhwc_sizes(node.input(0)) || node.input(0).elements() == 0 || node.input(1).elements() == 0) return false;
  const auto window = check_conv_transpose(node);
  if (!window.ok() || window->in_size() == 0) return false;
  // Phases and borders are made one by one; wide borders would be mostly zeros.
  for (size_t d : {1, 2}) {
    if (window->stride[d] > 64 || window->kernel[d] > 1024) return false;
    if ((window->kernel[d] - 1) * window->dilation[d] > 64 * window->stride[d]) return false;
    if (window->before[d] > 64 * window->stride[d]) return false;
    if (window->in[d] > (window->out[d] + 64) * window->stride[d]) return false;
  }
  return true;
}

}  // namespace pinnace::cpu
