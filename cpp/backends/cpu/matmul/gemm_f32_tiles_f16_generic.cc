// float32 matrix tiles whose weights are halves in memory, for the baseline.
#define PINNACE_LEVEL generic
#define PINNACE_LANES 4
#define PINNACE_WEIGHT F16Bits
#define PINNACE_TABLE gemm_f32_tiles_f16_generic
#define PINNACE_FORMAT WeightFormat::kF16
#include "backends/cpu/matmul/gemm_f32_tiles_body.h"
