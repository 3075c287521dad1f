// float32 matrix tiles for AVX-512: 16 lanes.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx512
#define PINNACE_LANES 16
#include "backends/cpu/matmul/gemm_f32_tiles_body.h"
#endif
