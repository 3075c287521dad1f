// float32 loops of resize for the baseline: four lanes (SSE2, NEON).
#define PINNACE_LEVEL generic
#define PINNACE_LANES 4
#include "backends/cpu/resize/resize_f32_body.h"
