// Greedy by size: see offset_plan.h.
#include "base/offset_plan.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "base/memory.h"

namespace pinnace {

OffsetPlan plan_offsets(std::span<const Lifetime> lifetimes, size_t block) {
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  OffsetPlan plan;
  plan.offsets.resize(lifetimes.size(), 0);
  std::vector<size_t> placed;  // indices by ascending offset
  for (size_t i : order) {
    const Lifetime& own = lifetimes[i];
    if (own.bytes == 0) continue;
    const size_t need = aligned_size(own.bytes);
    assert(need <= block);
    size_t at = 0;
    for (size_t j : placed) {
      const Lifetime& other = lifetimes[j];
      if (other.last < own.first || own.last < other.first) continue;
      if (plan.offsets[j] >= at + need) break;  // the gap before j is wide enough
      at = std::max(at, plan.offsets[j] + aligned_size(other.bytes));
      if (const size_t left = block - at % block; left < need) at += left;
    }
    plan.offsets[i] = at;
    plan.total = std::max(plan.total, at + need);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), at,
                                   [&](size_t offset, size_t j) { return offset < plan.offsets[j]; }),
                  i);
  }
  return plan;
}

}  // namespace pinnace
