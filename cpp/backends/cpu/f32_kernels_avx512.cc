// float32 inner loops for AVX-512: sixteen lanes, 12 rows x 2 of 32 registers.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx512
#define PINNACE_LANES 16
#define PINNACE_ROWS 12
#include "backends/cpu/f32_kernels_body.h"
#endif
