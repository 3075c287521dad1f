// How ARM64's tiles want their weights, for builds that pack them on x86-64: the numbers of the tables that the files
// named below define there, without their loops. tests/arm64 compares what both architectures pack.
#if defined(PINNACE_PACKS_ARM64)
#include "backends/cpu/f32_levels.h"
#include "backends/cpu/i8_levels.h"

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

// image_f32.body.cc, image_f16_neon_dotprod.cc, depthwise_i8.body.cc
const ImageF32Kernels image_f32_kernels_neon = {.lanes = 8};
const ImageKernels<uint16_t> image_f16_kernels_neon_dotprod = {.lanes = 8};
const DepthwiseI8Kernels depthwise_i8_kernels_neon_dotprod = {.widest = 16, .activation_offset = 128};
const DepthwiseI8Kernels depthwise_i8_kernels_neon_i8mm = {.widest = 16};

const MapKernels map_kernels_sve = {};
const F16Kernels f16_kernels_neon_dotprod = {};

}  // namespace pinnace::cpu
#endif
