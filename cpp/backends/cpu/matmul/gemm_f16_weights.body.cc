// float32 matrix tiles whose weights are fp16 in memory, widened as they are read.
#include "backends/cpu/simd/isa.h"

#define PINNACE_WEIGHT F16Bits
#include "backends/cpu/matmul/gemm_f32_tile.h"

namespace pinnace::cpu {

const GemmTilesF32 PINNACE_FOR_ISA(gemm_f32_tiles_f16) = PINNACE_ISA::tiles_of(WeightFormat::kF16);

}  // namespace pinnace::cpu
