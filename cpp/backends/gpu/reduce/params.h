// Push and specialisation constants of reductions and running sums: params.inc as structs.
#pragma once

#include "backends/gpu/push_constants.h"
#include "backends/gpu/reduce/params.inc"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(ReduceParams, REDUCE_PARAMS);
PINNACE_PUSH_CONSTANTS(Int8ReduceParams, INT8_REDUCE_PARAMS);
PINNACE_PUSH_CONSTANTS(CumSumParams, CUM_SUM_PARAMS);

PINNACE_SPEC_CONSTANTS(CumSumConstants, CUM_SUM_CONSTANTS);
PINNACE_SPEC_CONSTANTS(CumSumInt32Constants, CUM_SUM_INT32_CONSTANTS);
PINNACE_SPEC_CONSTANTS(Int8ReduceConstants, INT8_REDUCE_CONSTANTS);
PINNACE_SPEC_CONSTANTS(ReduceConstants, REDUCE_CONSTANTS);
PINNACE_SPEC_CONSTANTS(ReduceInt32Constants, REDUCE_INT32_CONSTANTS);

}  // namespace pinnace::gpu
