// The inner loops on halves, for processors that compute with them: matrix tiles and images as in float32, elementwise
// maps. Halves are their bits, uint16_t. Plain pointers and sizes only.
#pragma once

#include "backends/cpu/conv/image_f32.h"
#include "backends/cpu/matmul/gemm_f32_tiles.h"

namespace pinnace::cpu {

/// Sums, products and quotients are rounded once, curves taken in float32 and rounded.
struct F16Kernels {
  /// y[i] = map(x[i]); y may be x.
  void (*map)(const MapF32&, const uint16_t* x, uint16_t* y, int64_t count);
  /// y[i] = a[i * a_step] op b[i * b_step], steps 0 or 1; y may be a or b where that step is 1.
  void (*binary)(BinaryKind, const uint16_t* a, int a_step, const uint16_t* b, int b_step, uint16_t* y, int64_t count);
};

#if defined(__aarch64__) || defined(PINNACE_PACKS_ARM64)
extern const GemmTiles<uint16_t> gemm_f16_tiles_neon_dotprod;
extern const ImageKernels<uint16_t> image_f16_kernels_neon_dotprod;
extern const F16Kernels f16_kernels_neon_dotprod;
#endif

}  // namespace pinnace::cpu
