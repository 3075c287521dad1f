// float32 matrix tiles for the baseline: four lanes (SSE2, NEON). 6 rows x 2 registers of sums leave 4 of SSE2's 16
// registers for operands; NEON has 32.
#define PINNACE_LEVEL generic
#define PINNACE_LANES 4
#if defined(__aarch64__)
#define PINNACE_ROWS 12
#else
#define PINNACE_ROWS 6
#endif
#include "backends/cpu/gemm_f32_tiles_body.h"
