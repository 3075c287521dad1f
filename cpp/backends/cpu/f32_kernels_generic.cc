// float32 inner loops for the baseline: four lanes (SSE2, NEON). 6 rows x 2 registers of sums leave 4 of 16 for
// operands.
#define PINNACE_LEVEL generic
#define PINNACE_LANES 4
#define PINNACE_ROWS 6
#include "backends/cpu/f32_kernels_body.h"
