// 8-bit matrix tiles for AVX2: eight sums in a register.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx2
#define PINNACE_LANES 8
#define PINNACE_VNNI 0
#include "backends/cpu/matmul/gemm_i8_tiles_body.h"
#endif
