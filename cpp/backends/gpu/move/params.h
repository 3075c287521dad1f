// Push constants of copies: params.inc as structs.
#pragma once

#include "backends/gpu/move/params.inc"
#include "backends/gpu/push_constants.h"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(FillParams, FILL_PARAMS);
PINNACE_PUSH_CONSTANTS(FillInt32Params, FILL_INT32_PARAMS);
PINNACE_PUSH_CONSTANTS(MoveParams, MOVE_PARAMS);
PINNACE_PUSH_CONSTANTS(MoveBlocksParams, MOVE_BLOCKS_PARAMS);

}  // namespace pinnace::gpu
