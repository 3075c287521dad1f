// Push constants of changes of layout: params.inc as structs.
#pragma once

#include "backends/gpu/layout/params.inc"
#include "backends/gpu/push_constants.h"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(LayoutParams, LAYOUT_PARAMS);
PINNACE_PUSH_CONSTANTS(Int8LayoutParams, INT8_LAYOUT_PARAMS);

}  // namespace pinnace::gpu
