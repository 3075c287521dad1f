// Push constants of pools: params.inc as structs.
#pragma once

#include "backends/gpu/pool/params.inc"
#include "backends/gpu/push_constants.h"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(PoolParams, POOL_PARAMS);
PINNACE_PUSH_CONSTANTS(PoolGlobalParams, POOL_GLOBAL_PARAMS);
PINNACE_PUSH_CONSTANTS(Int8PoolParams, INT8_POOL_PARAMS);
PINNACE_PUSH_CONSTANTS(RoiAlignParams, ROI_ALIGN_PARAMS);

}  // namespace pinnace::gpu
