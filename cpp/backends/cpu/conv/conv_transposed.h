// conv_transpose over NHWC-packed tensors by phases. Outputs that stand a stride apart are reached by the same taps:
// each such phase is a convolution of x by these taps, without stride, whose rows are read where they lie and whose
// results stand a stride apart. Nothing is scattered, and each output is written once. Types and window were checked by
// the shape rule.
#pragma once

#include "backends/cpu/kernel.h"
#include "ops/convolution.h"

namespace pinnace::cpu {

/// In one dimension: the taps that reach outputs first, first + stride and so on. The i-th of them in the order of the
/// pixels that they read is kernel tap `last_tap - i * tap_step`, and reads pixel o / stride + offset + i * apart.
struct PhaseTaps {
  int64_t count, last_tap, tap_step, offset, apart;
};
PhaseTaps taps_of(const Window& w, size_t d, int64_t first);

/// What the parts of a kernel need of a node. check_conv_transpose's window: `in` is y, `out` is x.
struct Transposed {
  Window window;
  int64_t groups, in_channels, out_channels;  ///< channels per group
  int64_t phases(size_t d) const { return std::min(window.stride[d], window.in[d]); }
  /// Calls f(taps down, taps across, y, x) for every phase, (y, x) its first output.
  template <class F>
  void each_phase(F f) const {
    for (int64_t y = 0; y < phases(1); ++y) {
      for (int64_t x = 0; x < phases(2); ++x) f(taps_of(window, 1, y), taps_of(window, 2, x), y, x);
    }
  }
};
Transposed transposed(const KernelNode& node);

/// Zeros (quantised: zero points) that taps read beyond x.
Border transposed_border(const KernelNode& node);

/// True if the node is a transposed convolution of NHWC-packed tensors, whatever its weights.
bool transposed_takes(const KernelNode& node);

}  // namespace pinnace::cpu
