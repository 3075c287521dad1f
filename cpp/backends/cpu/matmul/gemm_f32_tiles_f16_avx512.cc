// float32 matrix tiles whose weights are halves in memory, for AVX-512.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx512
#define PINNACE_LANES 16
#define PINNACE_WEIGHT F16Bits
#define PINNACE_TABLE gemm_f32_tiles_f16_avx512
#define PINNACE_FORMAT WeightFormat::kF16
#include "backends/cpu/matmul/gemm_f32_tiles_body.h"
#endif
