// Push constants of reductions and running sums: params.inc as structs.
#pragma once

#include "backends/gpu/push_constants.h"
#include "backends/gpu/reduce/params.inc"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(ReduceParams, REDUCE_PARAMS);
PINNACE_PUSH_CONSTANTS(Int8ReduceParams, INT8_REDUCE_PARAMS);
PINNACE_PUSH_CONSTANTS(CumSumParams, CUM_SUM_PARAMS);

}  // namespace pinnace::gpu
