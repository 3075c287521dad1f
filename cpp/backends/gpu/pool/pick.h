// Choosing single pixels of NC4HW4 buffers of int8, by the kernel of pools.
#pragma once

#include "backends/gpu/lowering.h"

namespace pinnace::gpu {

/// Output 0 [N, C, rows, columns] = the pixels of input 0 at these places.
Status pick_places(NodeLowering& n, std::span<const int64_t> rows, std::span<const int64_t> columns);

}  // namespace pinnace::gpu
