// A pretend Metal device for Linux: what the Metal driver calls, answered in Objective-C++, with kernels run by
// softmetal.
#pragma once

#include <cstdint>

#include "backends/softmetal/library.h"

namespace pinnace::testing {

/// What MTLCreateSystemDefaultDevice() gives from now on, and what it does wrong.
struct PretendMetal {
  const SoftmetalLibrary* kernels = nullptr;  ///< null: there is no device
  uint32_t order = kSoftmetalForward;         ///< of invocations, and of commands that nothing orders
  bool unified_memory = true;
  long family = 1007;                   ///< the newest of Apple's that it supports
  unsigned simd_width = 32;             ///< of its pipelines
  uint64_t failing_command_buffer = 0;  ///< the n-th from 1 that is waited for fails; 0: none
  long failure_code = 0;                ///< of its NSError
};
PretendMetal& pretend_metal();

/// Uses of the interface that Metal's own checks would refuse: a buffer that ends before an offset, a dispatch without
/// a pipeline, a command buffer that is committed twice or with an open encoder. "" if there were none since the last
/// call.
const char* pretend_metal_misuse();

}  // namespace pinnace::testing
