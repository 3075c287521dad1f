// float32 matrix tiles.
#include "backends/cpu/simd/isa.h"

#define PINNACE_WEIGHT float
#include "backends/cpu/matmul/gemm_f32_tile.h"

namespace pinnace::cpu {

const GemmTilesF32 PINNACE_FOR_ISA(gemm_f32_tiles) = PINNACE_ISA::tiles_of(WeightFormat::kF32);

}  // namespace pinnace::cpu
