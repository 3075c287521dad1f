// Sums of integers back to quantised tensors, as ops/product.h defines it: what kernels of products and convolutions
// take.
#pragma once

#include "backends/gpu/lowering.h"
#include "ops/product.h"

namespace pinnace::gpu {

/// The bits of the multiplier of a channel, which tables of integers hold.
inline int32_t multiplier_bits(const Requantize& r, int64_t channel) {
  return std::bit_cast<int32_t>(r.m[r.m.size() > 1 ? static_cast<size_t>(channel) : 0]);
}

}  // namespace pinnace::gpu
