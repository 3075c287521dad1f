// Rows of softmax in float32, compiled once per instruction set. Plain pointers and sizes only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pinnace::cpu {

struct SoftmaxLoops {
  /// y[i] = exp(x[i] - largest x) / their sum; y may be x.
  void (*softmax)(const float* x, float* y, int64_t count);
  /// y[i] = exp(x[i] - largest x), and their sum; all 0 where every x is -inf. y may be x.
  float (*exp_sum)(const float* x, float* y, int64_t count);
};

extern const SoftmaxLoops softmax_loops_f32_generic;
#if defined(__x86_64__)
extern const SoftmaxLoops softmax_loops_f32_avx2, softmax_loops_f32_avx512;
#endif

}  // namespace pinnace::cpu
