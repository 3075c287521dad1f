// The float32 loops of resize, compiled once per instruction set. Plain pointers and sizes only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pinnace::cpu {

/// One axis: output place i is the sum of weight[k] * place index[k] for k in [start[i], start[i + 1]), one or more.
struct ResizeTapsF32 {
  const int32_t* start;
  const int32_t* index;
  const float* weight;
};

struct ResizeF32Kernels {
  /// Output place i of an axis whose places are `stride` floats apart: y[j] = sum of weight[k] * x[index[k] * stride +
  /// j], j in [0, count). y overlaps nothing.
  void (*across)(const ResizeTapsF32& taps, int64_t i, const float* x, ptrdiff_t stride, float* y, int64_t count);
  /// All `out` places, each of `channels` floats.
  void (*along)(const ResizeTapsF32& taps, int64_t out, const float* x, ptrdiff_t x_pitch, float* y, ptrdiff_t y_pitch,
                int64_t channels);
};

extern const ResizeF32Kernels resize_f32_kernels_generic;
#if defined(__x86_64__)
extern const ResizeF32Kernels resize_f32_kernels_avx2, resize_f32_kernels_avx512;
#endif

}  // namespace pinnace::cpu
