// Push constants of top_k: params.inc as structs.
#pragma once

#include "backends/gpu/push_constants.h"
#include "backends/gpu/sort/params.inc"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(TopKParams, TOP_K_PARAMS);

}  // namespace pinnace::gpu
