// Matrix tiles of bfloat16 for AVX-512 with its dot product of pairs: 32 products an instruction, summed in float32.
#if defined(__x86_64__)
#define PINNACE_LEVEL avx512_bf16
#define PINNACE_LANES 16
#define PINNACE_WEIGHT BF16Pair
#define PINNACE_TABLE gemm_f32_tiles_bf16_avx512_bf16
#define PINNACE_FORMAT WeightFormat::kBf16Pairs
#include "backends/cpu/matmul/gemm_f32_tiles_body.h"
#endif
