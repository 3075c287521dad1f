// Rows of an 8-bit softmax for AVX-512: 16 floats in a register.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx512
#define PINNACE_LANES 16
#define PINNACE_VNNI 0
#include "backends/cpu/softmax/softmax_i8_body.h"
#endif
