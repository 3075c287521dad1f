// 8-bit matrix tiles for the baseline: four sums in a register (SSE2, or plain C++).
#define PINNACE_LEVEL generic
#define PINNACE_LANES 4
#define PINNACE_VNNI 0
#include "backends/cpu/matmul/gemm_i8_tiles_body.h"
