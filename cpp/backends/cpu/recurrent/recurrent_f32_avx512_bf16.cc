// Recurrent loops of bfloat16 for AVX-512 with its dot product of pairs, summed in float32.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx512_bf16
#define PINNACE_LANES 16
#define PINNACE_PAIRS 1
#include "backends/cpu/recurrent/recurrent_f32_body.h"
#endif
