// Push and specialisation constants of lstm, gru and rnn: params.inc as structs.
#pragma once

#include "backends/gpu/push_constants.h"
#include "backends/gpu/recurrent/params.inc"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(RecurrentParams, RECURRENT_PARAMS);

PINNACE_SPEC_CONSTANTS(RecurrentConstants, RECURRENT_CONSTANTS);

}  // namespace pinnace::gpu
