// 8-bit depthwise convolution for the baseline: 4 int32 in a register.
#define PINNACE_LEVEL generic
#define PINNACE_LANES 4
#define PINNACE_VNNI 0
#include "backends/cpu/conv/depthwise_i8_body.h"
