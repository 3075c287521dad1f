// Conversions of element types for AVX2.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx2
#include "backends/cpu/cast/cast_loops_body.h"
#endif
