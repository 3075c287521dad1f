// offset_plan: packs buffers with known lifetimes into one block of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pinnace {

/// A buffer that is in use during steps [first, last], both included.
struct Lifetime {
  size_t bytes = 0;
  int32_t first = 0;
  int32_t last = 0;
};

/// The memory is not cut.
inline constexpr size_t kOneBlock = SIZE_MAX;

struct OffsetPlan {
  std::vector<size_t> offsets;  ///< one per lifetime, multiples of kAlignment
  size_t total = 0;             ///< bytes of the memory
};

/// Buffers whose lifetimes meet do not overlap. Largest first, each at the lowest place where it fits ("greedy by
/// size", Pisarchyk and Lee 2020): within a few per cent of optimal on networks. Zero-sized buffers get offset 0.
/// None lies across a multiple of `block`, which is a multiple of kAlignment and no less than the largest buffer: the
/// memory may be cut there. O(n^2).
OffsetPlan plan_offsets(std::span<const Lifetime> lifetimes, size_t block = kOneBlock);

}  // namespace pinnace
