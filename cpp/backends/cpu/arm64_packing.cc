// How ARM64's tiles want their weights, for builds that pack them on x86-64: the numbers of the tables that the files
// named below define there, without their loops. tests/arm64 compares what both architectures pack.
#if defined(PINNACE_PACKS_ARM64)
#include "backends/cpu/f32_isa.h"
#include "backends/cpu/i8_isa.h"
#include "backends/cpu/pool/max_pool_row.h"

namespace pinnace::cpu {

// gemm_f32_tile.h, gemm_f32_tiles_sve.cc, gemm_f16_tiles_neon_dotprod.cc
const GemmTilesF32 gemm_f32_tiles_neon = {16, 8, nullptr, WeightFormat::kF32};
const GemmTilesF32 gemm_f32_tiles_f16_neon = {16, 8, nullptr, WeightFormat::kF16};
const GemmTilesF32 gemm_f32_tiles_bf16_neon = {16, 8, nullptr, WeightFormat::kBf16};
const GemmTilesF32 gemm_f32_tiles_sve = {16, 8, nullptr, WeightFormat::kF32};
const GemmTiles<uint16_t> gemm_f16_tiles_neon_dotprod = {16, 8, nullptr, WeightFormat::kF16};

// gemm_i8_tiles.body.cc
const GemmTilesI8 gemm_i8_tiles_neon = {16, 16, nullptr, 0, 1};
const GemmTilesI8 gemm_i8_tiles_neon_dotprod = {16, 16, nullptr, 128, 4};
const GemmTilesI8 gemm_i8_tiles_neon_i8mm = {16, 16, nullptr, 0, 8};

// depthwise_f32.body.cc, depthwise_f16_neon_dotprod.cc, depthwise_i8.body.cc
const DepthwiseLoops<float> depthwise_loops_f32_neon = {.lanes = 8};
const DepthwiseLoops<uint16_t> depthwise_loops_f16_neon_dotprod = {.lanes = 8};
const DepthwiseI8Kernels depthwise_i8_kernels_neon_dotprod = {.widest = 16, .activation_offset = 128};
const DepthwiseI8Kernels depthwise_i8_kernels_neon_i8mm = {.widest = 16};

const ActivationLoops<float> activation_loops_f32_sve = {};
const ActivationLoops<uint16_t> activation_loops_f16_neon_dotprod = {};
const ArithmeticLoops<uint16_t> arithmetic_loops_f16_neon_dotprod = {};
const ColumnFolds<uint16_t> column_folds_f16_neon_dotprod = {};
void max_pool_row_f16_neon_dotprod(const MaxPoolRow<uint16_t>&) {}

}  // namespace pinnace::cpu
#endif
