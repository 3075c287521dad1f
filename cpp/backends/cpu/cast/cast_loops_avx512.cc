// Conversions of element types for AVX-512.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx512
#include "backends/cpu/cast/cast_loops_body.h"
#endif
