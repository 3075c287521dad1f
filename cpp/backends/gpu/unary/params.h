// Push and specialisation constants of chains and tables: params.inc as structs.
#pragma once

#include "backends/gpu/push_constants.h"
#include "backends/gpu/unary/params.inc"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(ElementwiseParams, ELEMENTWISE_PARAMS);
PINNACE_PUSH_CONSTANTS(Int8TableParams, INT8_TABLE_PARAMS);

PINNACE_SPEC_CONSTANTS(ElementwiseConstants, ELEMENTWISE_CONSTANTS);
PINNACE_SPEC_CONSTANTS(Int8TableConstants, INT8_TABLE_CONSTANTS);

}  // namespace pinnace::gpu
