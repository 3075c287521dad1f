// Push and specialisation constants of softmax: params.inc as structs.
#pragma once

#include "backends/gpu/push_constants.h"
#include "backends/gpu/softmax/params.inc"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(SoftmaxParams, SOFTMAX_PARAMS);
PINNACE_PUSH_CONSTANTS(Int8SoftmaxParams, INT8_SOFTMAX_PARAMS);

PINNACE_SPEC_CONSTANTS(Int8NormConstants, INT8_NORM_CONSTANTS);
PINNACE_SPEC_CONSTANTS(SoftmaxConstants, SOFTMAX_CONSTANTS);

}  // namespace pinnace::gpu
