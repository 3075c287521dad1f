// 8-bit matrix tiles for AVX-512 with VNNI: sixteen sums in a register, four products an instruction and lane.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx512_vnni
#define PINNACE_LANES 16
#define PINNACE_VNNI 1
#include "backends/cpu/matmul/gemm_i8_tiles_body.h"
#endif
