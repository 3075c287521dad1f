// Push and specialisation constants of pools: params.inc as structs.
#pragma once

#include "backends/gpu/pool/params.inc"
#include "backends/gpu/push_constants.h"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(PoolParams, POOL_PARAMS);
PINNACE_PUSH_CONSTANTS(PoolAdaptiveParams, POOL_ADAPTIVE_PARAMS);
PINNACE_PUSH_CONSTANTS(PoolGlobalParams, POOL_GLOBAL_PARAMS);
PINNACE_PUSH_CONSTANTS(Int8PoolParams, INT8_POOL_PARAMS);
PINNACE_PUSH_CONSTANTS(RoiAlignParams, ROI_ALIGN_PARAMS);

PINNACE_SPEC_CONSTANTS(Int8PoolConstants, INT8_POOL_CONSTANTS);
PINNACE_SPEC_CONSTANTS(PoolConstants, POOL_CONSTANTS);
PINNACE_SPEC_CONSTANTS(PoolAdaptiveConstants, POOL_ADAPTIVE_CONSTANTS);
PINNACE_SPEC_CONSTANTS(PoolGlobalConstants, POOL_GLOBAL_CONSTANTS);
PINNACE_SPEC_CONSTANTS(RoiAlignConstants, ROI_ALIGN_CONSTANTS);

}  // namespace pinnace::gpu
