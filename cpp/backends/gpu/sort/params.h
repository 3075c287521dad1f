// Push and specialisation constants of top_k: params.inc as structs.
#pragma once

#include "backends/gpu/push_constants.h"
#include "backends/gpu/sort/params.inc"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(TopKParams, TOP_K_PARAMS);

PINNACE_SPEC_CONSTANTS(TopKInt32Constants, TOP_K_INT32_CONSTANTS);
PINNACE_SPEC_CONSTANTS(TopKConstants, TOP_K_CONSTANTS);

}  // namespace pinnace::gpu
