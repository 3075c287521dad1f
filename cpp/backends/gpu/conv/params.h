// Push constants of convolutions: params.inc as structs.
#pragma once

#include "backends/gpu/conv/params.inc"
#include "backends/gpu/push_constants.h"

namespace pinnace::gpu {

PINNACE_PUSH_CONSTANTS(ConvNc4hw4Params, CONV_NC4HW4_PARAMS);
PINNACE_PUSH_CONSTANTS(ConvDepthwiseParams, CONV_DEPTHWISE_PARAMS);
PINNACE_PUSH_CONSTANTS(ConvPointwiseParams, CONV_POINTWISE_PARAMS);
PINNACE_PUSH_CONSTANTS(ConvDenseParams, CONV_DENSE_PARAMS);
PINNACE_PUSH_CONSTANTS(WinogradInputParams, WINOGRAD_INPUT_PARAMS);
PINNACE_PUSH_CONSTANTS(WinogradOutputParams, WINOGRAD_OUTPUT_PARAMS);
PINNACE_PUSH_CONSTANTS(Int8ConvParams, INT8_CONV_PARAMS);
PINNACE_PUSH_CONSTANTS(Int8DepthwiseParams, INT8_DEPTHWISE_PARAMS);
PINNACE_PUSH_CONSTANTS(Int8ConvDenseParams, INT8_CONV_DENSE_PARAMS);

}  // namespace pinnace::gpu
