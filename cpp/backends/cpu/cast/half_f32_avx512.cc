// 16-bit floats for AVX-512: sixteen lanes.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx512
#define PINNACE_LANES 16
#include "backends/cpu/cast/half_f32_body.h"
#endif
