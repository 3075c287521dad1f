// float32 matrix tiles whose weights are bfloat16 in memory: widened as they are read, or, where the instruction set
// has dot products of pairs, multiplied as pairs, 32 products an instruction, and summed in float32.
#include "backends/cpu/simd/isa.h"

#if PINNACE_BF16_PAIRS
#define PINNACE_WEIGHT BF16Pair
#else
#define PINNACE_WEIGHT BF16Bits
#endif
#include "backends/cpu/matmul/gemm_f32_tile.h"

namespace pinnace::cpu {

const GemmTilesF32 PINNACE_FOR_ISA(gemm_f32_tiles_bf16) = PINNACE_ISA::tiles_of(PINNACE_BF16_PAIRS
                                                                                    ? WeightFormat::kBf16Pairs
                                                                                    : WeightFormat::kBf16);

}  // namespace pinnace::cpu
