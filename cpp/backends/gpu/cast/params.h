// Push constants of casts: params.inc as structs.
#pragma once

#include "backends/gpu/cast/params.inc"
#include "backends/gpu/push_constants.h"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(FromInt32Params, FROM_INT32_PARAMS);

}  // namespace pinnace::gpu
