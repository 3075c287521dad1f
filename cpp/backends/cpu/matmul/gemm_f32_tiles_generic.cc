// float32 matrix tiles for the baseline: four lanes (SSE2, NEON). 6 rows x 2 registers of sums leave 4 of SSE2's 16
// registers for operands; NEON's 32 have a tile of their own.
#define PINNACE_LEVEL generic
#define PINNACE_LANES 4
#include "backends/cpu/matmul/gemm_f32_tiles_body.h"
