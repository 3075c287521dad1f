// Rows of an 8-bit softmax for AVX2: 8 floats in a register.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx2
#define PINNACE_LANES 8
#define PINNACE_VNNI 0
#include "backends/cpu/softmax/softmax_i8_body.h"
#endif
