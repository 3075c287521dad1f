// The 8-bit loops of resize, once per instruction set, in double as the operator has it and to its bits. Plain pointers
// and sizes only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pinnace::cpu {

/// One axis: output place i is the sum of weight[k] * place index[k] for k in [i * count, (i + 1) * count), in order.
struct ResizeTapsI8 {
  int64_t count;
  const int32_t* index;
  const double* weight;
};

struct ResizeLoopsI8 {
  /// Output place i of an axis whose places are `stride` bytes apart: y[j] = sum of weight[k] * real number of
  /// x[index[k] * stride + j], j in [0, n). A real number is float32((byte ^ flip) - zero) * scale.
  void (*across)(const ResizeTapsI8& taps, int64_t i, const uint8_t* x, ptrdiff_t stride, int32_t zero, float scale,
                 uint8_t flip, double* y, int64_t n);
  /// All `out` places of `channels` numbers, in x and y one after the other, rounded to float32.
  void (*along)(const ResizeTapsI8& taps, int64_t out, const double* x, int64_t channels, float* y);
};

extern const ResizeLoopsI8 resize_loops_i8_generic;
#if defined(__x86_64__)
extern const ResizeLoopsI8 resize_loops_i8_avx2, resize_loops_i8_avx512;
#endif

}  // namespace pinnace::cpu
