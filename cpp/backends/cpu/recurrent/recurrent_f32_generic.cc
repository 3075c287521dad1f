// float32 loops of recurrent operators for the baseline: four lanes (SSE2, NEON).
#define PINNACE_LEVEL generic
#define PINNACE_LANES 4
#include "backends/cpu/recurrent/recurrent_f32_body.h"
