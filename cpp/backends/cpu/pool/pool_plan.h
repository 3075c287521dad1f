// The window of a pool as its kernels need it: worked out once for a node's sizes, kept with the plan.
#pragma once

#include <new>

#include "backends/cpu/kernel.h"
#include "base/cancel.h"
#include "ops/pool.h"

namespace pinnace::cpu {

/// A kernel asks loop_stops() inside a plane where a window has more taps: with those of most networks a plane takes
/// milliseconds, with larger ones it may take hours.
inline constexpr int64_t kLargeWindow = 256;

inline Result<Window> pool_window(const KernelNode& node) {
  Shape y;
  return check_pool(node, y);
}

/// CpuKernel::plan_bytes and plan of a kernel that needs the window alone. `takes` has seen that it is right.
inline int64_t window_plan_bytes(const KernelNode&) {
  return sizeof(Window);
}
inline void plan_window(const KernelNode& node, const Layout*, std::byte* to) {
  new (to) Window(*pool_window(node));
}
inline const Window& planned_window(const KernelContext& context) {
  return *reinterpret_cast<const Window*>(context.plan);
}

}  // namespace pinnace::cpu
