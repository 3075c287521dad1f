// float32 matrix tiles whose weights are bfloat16 in memory, for AVX-512.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx512
#define PINNACE_LANES 16
#define PINNACE_WEIGHT BF16Bits
#define PINNACE_TABLE gemm_f32_tiles_bf16_avx512
#define PINNACE_FORMAT WeightFormat::kBf16
#include "backends/cpu/matmul/gemm_f32_tiles_body.h"
#endif
