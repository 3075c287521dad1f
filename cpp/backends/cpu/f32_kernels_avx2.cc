// float32 inner loops for AVX2 with FMA: eight lanes, 6 rows x 2 registers of sums.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx2
#define PINNACE_LANES 8
#define PINNACE_ROWS 6
#include "backends/cpu/f32_kernels_body.h"
#endif
