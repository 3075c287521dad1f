// 16-bit floats for the baseline: four lanes (SSE2, NEON).
#define PINNACE_LEVEL generic
#define PINNACE_LANES 4
#include "backends/cpu/cast/half_f32_body.h"
