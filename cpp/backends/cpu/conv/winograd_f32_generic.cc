// Winograd transforms in float32 for the baseline: four lanes (SSE2, NEON).
#define PINNACE_LEVEL generic
#define PINNACE_LANES 4
#include "backends/cpu/conv/winograd_f32_body.h"
