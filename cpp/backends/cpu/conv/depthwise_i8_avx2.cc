// 8-bit depthwise convolution for AVX2: 8 int32 in a register.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx2
#define PINNACE_LANES 8
#define PINNACE_VNNI 0
#include "backends/cpu/conv/depthwise_i8_body.h"
#endif
