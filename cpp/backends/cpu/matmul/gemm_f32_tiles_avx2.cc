// float32 matrix tiles for AVX2: 8 lanes.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx2
#define PINNACE_LANES 8
#include "backends/cpu/matmul/gemm_f32_tiles_body.h"
#endif
