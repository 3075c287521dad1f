// Loops over integers and comparisons for AVX-512.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx512
#include "backends/cpu/binary/plain_loops_body.h"
#endif
