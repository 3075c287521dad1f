// Push and specialisation constants of arithmetic, comparisons and choices: params.inc as structs.
#pragma once

#include "backends/gpu/binary/params.inc"
#include "backends/gpu/push_constants.h"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(ElementwiseBroadcastParams, ELEMENTWISE_BROADCAST_PARAMS);
PINNACE_PUSH_CONSTANTS(PairParams, PAIR_PARAMS);
PINNACE_PUSH_CONSTANTS(Int8PairDenseParams, INT8_PAIR_DENSE_PARAMS);
PINNACE_PUSH_CONSTANTS(Int8PairParams, INT8_PAIR_PARAMS);
PINNACE_PUSH_CONSTANTS(SelectParams, SELECT_PARAMS);

PINNACE_SPEC_CONSTANTS(CompareConstants, COMPARE_CONSTANTS);
PINNACE_SPEC_CONSTANTS(ElementwiseBroadcastConstants, ELEMENTWISE_BROADCAST_CONSTANTS);
PINNACE_SPEC_CONSTANTS(ElementwiseInt32Constants, ELEMENTWISE_INT32_CONSTANTS);
PINNACE_SPEC_CONSTANTS(Int8PairConstants, INT8_PAIR_CONSTANTS);

}  // namespace pinnace::gpu
