// Push constants of resizes: params.inc as structs.
#pragma once

#include "backends/gpu/push_constants.h"
#include "backends/gpu/resize/params.inc"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(ResizeParams, RESIZE_PARAMS);
PINNACE_PUSH_CONSTANTS(Int8ResizeParams, INT8_RESIZE_PARAMS);

}  // namespace pinnace::gpu
