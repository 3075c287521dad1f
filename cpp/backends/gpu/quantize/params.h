// Push and specialisation constants of quantisation: params.inc as structs.
#pragma once

#include "backends/gpu/push_constants.h"
#include "backends/gpu/quantize/params.inc"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(QuantizeParams, QUANTIZE_PARAMS);
PINNACE_PUSH_CONSTANTS(DequantizeParams, DEQUANTIZE_PARAMS);
PINNACE_PUSH_CONSTANTS(DynamicQuantizeParams, DYNAMIC_QUANTIZE_PARAMS);

PINNACE_SPEC_CONSTANTS(DequantizeConstants, DEQUANTIZE_CONSTANTS);
PINNACE_SPEC_CONSTANTS(DynamicQuantizeConstants, DYNAMIC_QUANTIZE_CONSTANTS);
PINNACE_SPEC_CONSTANTS(QuantizeConstants, QUANTIZE_CONSTANTS);

}  // namespace pinnace::gpu
