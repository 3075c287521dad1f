// Push and specialisation constants of matrix products: params.inc as structs.
#pragma once

#include "backends/gpu/matmul/params.inc"
#include "backends/gpu/push_constants.h"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(GemmParams, GEMM_PARAMS);
PINNACE_PUSH_CONSTANTS(Int8GemmParams, INT8_GEMM_PARAMS);
PINNACE_PUSH_CONSTANTS(GemmInt32Params, GEMM_INT32_PARAMS);

PINNACE_SPEC_CONSTANTS(GemmConstants, GEMM_CONSTANTS);
PINNACE_SPEC_CONSTANTS(GemmInt32Constants, GEMM_INT32_CONSTANTS);
PINNACE_SPEC_CONSTANTS(Int8GemmConstants, INT8_GEMM_CONSTANTS);

}  // namespace pinnace::gpu
