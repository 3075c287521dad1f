// Push and specialisation constants of normalisations: params.inc as structs.
#pragma once

#include "backends/gpu/normalize/params.inc"
#include "backends/gpu/push_constants.h"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(BatchNormParams, BATCH_NORM_PARAMS);
PINNACE_PUSH_CONSTANTS(LrnParams, LRN_PARAMS);
PINNACE_PUSH_CONSTANTS(NormalizeParams, NORMALIZE_PARAMS);

PINNACE_SPEC_CONSTANTS(NormalizeConstants, NORMALIZE_CONSTANTS);

}  // namespace pinnace::gpu
