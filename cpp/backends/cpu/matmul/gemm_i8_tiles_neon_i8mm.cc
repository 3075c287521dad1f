// 8-bit matrix tiles for ARMv8.6: dot products of unsigned by signed bytes, matrix products of eight.
#if defined(__aarch64__)
#define PINNACE_LEVEL neon_i8mm
#define PINNACE_LANES 4
#define PINNACE_VNNI 0
#define PINNACE_USDOT 1
#include "backends/cpu/matmul/gemm_i8_tiles_body.h"
#endif
