// 16-bit floats for AVX2 with F16C: eight lanes.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx2
#define PINNACE_LANES 8
#include "backends/cpu/cast/half_f32_body.h"
#endif
