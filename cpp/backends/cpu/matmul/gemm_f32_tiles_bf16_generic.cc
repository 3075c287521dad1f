// float32 matrix tiles whose weights are bfloat16 in memory, for the baseline.
#define PINNACE_LEVEL generic
#define PINNACE_LANES 4
#define PINNACE_WEIGHT BF16Bits
#define PINNACE_TABLE gemm_f32_tiles_bf16_generic
#define PINNACE_FORMAT WeightFormat::kBf16
#include "backends/cpu/matmul/gemm_f32_tiles_body.h"
