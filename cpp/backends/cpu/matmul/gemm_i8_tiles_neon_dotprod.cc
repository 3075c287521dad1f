// 8-bit matrix tiles for ARMv8.2: dot products of four signed bytes, four sums in a register.
#if defined(__aarch64__)
#define PINNACE_LEVEL neon_dotprod
#define PINNACE_LANES 4
#define PINNACE_VNNI 0
#define PINNACE_SDOT 1
#include "backends/cpu/matmul/gemm_i8_tiles_body.h"
#endif
