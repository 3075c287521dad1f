// Sums of two NC4HW4 buffers of which a convolution makes one.
#pragma once

#include "backends/gpu/lowering.h"

namespace pinnace::gpu {

/// Output 0 = activation(input 0 + input 1) as part of the convolution that makes one of them, if there is one and
/// nobody else reads what it made; else false, and nothing was done.
bool add_to_convolution(NodeLowering& n, const Activation& activation);

}  // namespace pinnace::gpu
