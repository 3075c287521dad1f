// 8-bit depthwise convolution for AVX-512 with VNNI: 16 int32 in a register.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx512_vnni
#define PINNACE_LANES 16
#define PINNACE_VNNI 1
#include "backends/cpu/conv/depthwise_i8_body.h"
#endif
