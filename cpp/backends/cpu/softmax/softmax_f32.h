// Rows of softmax in float32, compiled once per instruction set. Plain pointers and sizes only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/loops.h"

namespace pinnace::cpu {

struct SoftmaxLoops {
  /// y[i] = exp(x[i] - largest x) / their sum; y may be x.
  void (*softmax)(const float* x, float* y, int64_t count);
  /// y[i] = exp(x[i] - largest x), and their sum; all 0 where every x is -inf. y may be x.
  float (*exp_sum)(const float* x, float* y, int64_t count);
};

PINNACE_LOOPS(SoftmaxLoops, softmax_loops_f32)

}  // namespace pinnace::cpu
