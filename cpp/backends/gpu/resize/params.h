// Push and specialisation constants of resizes: params.inc as structs.
#pragma once

#include "backends/gpu/push_constants.h"
#include "backends/gpu/resize/params.inc"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(ResizeParams, RESIZE_PARAMS);
PINNACE_PUSH_CONSTANTS(GridSampleParams, GRID_SAMPLE_PARAMS);
PINNACE_PUSH_CONSTANTS(Int8ResizeParams, INT8_RESIZE_PARAMS);

PINNACE_SPEC_CONSTANTS(GridSampleConstants, GRID_SAMPLE_CONSTANTS);
PINNACE_SPEC_CONSTANTS(Int8ResizeConstants, INT8_RESIZE_CONSTANTS);
PINNACE_SPEC_CONSTANTS(ResizeConstants, RESIZE_CONSTANTS);

}  // namespace pinnace::gpu
