// float32 functions for AVX2: 8 lanes.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx2
#define PINNACE_LANES 8
#include "backends/cpu/unary/math_f32_body.h"
#endif
