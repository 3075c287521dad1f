// float32 functions for AVX-512: 16 lanes.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx512
#define PINNACE_LANES 16
#include "backends/cpu/unary/math_f32_body.h"
#endif
