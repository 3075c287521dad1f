// Push and specialisation constants of attention: params.inc as structs.
#pragma once

#include "backends/gpu/attention/params.inc"
#include "backends/gpu/push_constants.h"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(AttentionParams, ATTENTION_PARAMS);

PINNACE_SPEC_CONSTANTS(AttentionConstants, ATTENTION_CONSTANTS);

}  // namespace pinnace::gpu
