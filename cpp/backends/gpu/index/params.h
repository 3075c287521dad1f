// Push and specialisation constants of gathers, scatters and what is made from places: params.inc as structs.
#pragma once

#include "backends/gpu/index/params.inc"
#include "backends/gpu/push_constants.h"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(GatherParams, GATHER_PARAMS);
PINNACE_PUSH_CONSTANTS(LengthsParams, LENGTHS_PARAMS);
PINNACE_PUSH_CONSTANTS(PlaceParams, PLACE_PARAMS);
PINNACE_PUSH_CONSTANTS(RangeParams, RANGE_PARAMS);
PINNACE_PUSH_CONSTANTS(ScatterParams, SCATTER_PARAMS);

PINNACE_SPEC_CONSTANTS(LengthsConstants, LENGTHS_CONSTANTS);
PINNACE_SPEC_CONSTANTS(RangeConstants, RANGE_CONSTANTS);
PINNACE_SPEC_CONSTANTS(ScatterConstants, SCATTER_CONSTANTS);
PINNACE_SPEC_CONSTANTS(ScatterInt32Constants, SCATTER_INT32_CONSTANTS);

}  // namespace pinnace::gpu
