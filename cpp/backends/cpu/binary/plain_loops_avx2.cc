// Loops over integers and comparisons for AVX2.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx2
#include "backends/cpu/binary/plain_loops_body.h"
#endif
