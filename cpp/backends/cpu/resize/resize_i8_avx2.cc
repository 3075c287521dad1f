// The 8-bit loops of resize for AVX2.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx2
#include "backends/cpu/resize/resize_i8_body.h"
#endif
