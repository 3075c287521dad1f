// What the lowerings of convolutions share: one convolution, its bias, and what kernels cost on a phone.
#pragma once

#include "backends/gpu/conv/params.h"
#include "backends/gpu/unary/chain.h"
#include "ops/convolution.h"

namespace pinnace::gpu {

struct Convolution {
  Window window;
  int64_t N, C, M, group;
  Activation activation;
  /// What the kernel applies; the rest follows as a step of its own.
  Epilogue epilogue() const { return in_epilogue(activation) ? epilogue_of(activation) : Epilogue(); }
  double work() const {
    const int64_t inputs = C / group;
    return static_cast<double>(N * M * window.out_size()) * static_cast<double>(inputs * window.taps());
  }
};

/// Positions are 32-bit integers in kernels: a stride that leaves them is never taken twice, but is multiplied.
bool positions_fit(const Window& w);
/// Loop turns of one output of a window, at each tap of which a loop goes through so many vectors of channels.
int64_t window_turns(const Window& w, int64_t vectors);
/// Of kernels of dense tensors: the window's taps of each of so many channels.
int64_t dense_window_turns(const Window& w, int64_t channels);

/// Bias by channel, zeros without one, filled up to whole blocks.
TensorId bias_weights(NodeLowering& n, int64_t M);

/// Sizes of a window as push constants of the kernels of rows; what 32 bits do not hold is never reached.
inline std::array<PushInt, 3> row_window(const std::array<int64_t, 3>& sizes) {
  std::array<PushInt, 3> pushed;
  for (size_t d = 0; d < 3; ++d) pushed[d] = std::min<int64_t>(sizes[d], INT32_MAX);
  return pushed;
}

/// What multiplies weights and pixels, of C channels to M: by simdgroup matrices where the device has them and each has
/// something in all of its rows and columns. Both kernels take the same bindings, push constants and groups.
inline KernelId pointwise_kernel(const NodeLowering& n, int64_t C, int64_t M, int64_t pixels) {
  const bool fills = C >= 8 && M >= 8 && pixels >= 8;
  return n.simdgroup_matrices() && n.trusts(KernelId::conv_matrices) && fills ? KernelId::conv_matrices
                                                                              : KernelId::conv_pointwise;
}

/// Seconds of a dispatch on a phone's GPU of the middle class, by which kernels are chosen, on every device alike: a
/// hundred billion multiply-adds a second; 15 GB/s to memory, 40 to what its caches of 2 MiB hold between kernels; 10
/// microseconds for the dispatch and its barrier.
struct PhoneCost {
  double multiply_adds = 0;
  double weight_bytes = 0;
  std::array<double, 2> tensor_bytes{};  ///< read and written
  double seconds() const {
    double memory = weight_bytes / 15e9;
    for (const double bytes : tensor_bytes) memory += bytes / (bytes <= 2 << 20 ? 40e9 : 15e9);
    return std::max(multiply_adds / 1e11, memory) + 10e-6;
  }
};

/// Lowers a convolution by Winograd's F(4x4, 3x3) or F(2x2, 3x3), if it is one for them and they cost less than the
/// direct one; else false, and nothing was done.
bool lower_winograd(NodeLowering& n, const Convolution& c);

}  // namespace pinnace::gpu
