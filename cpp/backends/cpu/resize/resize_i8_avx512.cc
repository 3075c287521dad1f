// The 8-bit loops of resize for AVX-512.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx512
#include "backends/cpu/resize/resize_i8_body.h"
#endif
