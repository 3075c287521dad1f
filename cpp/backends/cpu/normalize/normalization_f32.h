// The loops of normalisations in float32, compiled once per instruction set. Plain pointers and sizes only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/loops.h"

namespace pinnace::cpu {

/// Of some numbers: their mean, nearly, what that left off, and their variance (of the population), 0 or more.
struct MomentsF32 {
  float centre;
  double rest, variance;
};

struct NormalizationLoops {
  /// Sums in double; no square of a number overflows. A NaN or an infinity makes the variance NaN.
  MomentsF32 (*moments)(const float* x, int64_t count);
  /// y = (x - mean) / sqrt(variance + epsilon) * scale + bias; bias may be null. Without `centred`, 0 stands for the
  /// mean.
  void (*normalize)(const float* x, float* y, int64_t count, float epsilon, bool centred, const float* scale,
                    const float* bias);
  /// y[i] = (x[i] - centre) * factor + bias; y may be x.
  void (*affine)(const float* x, float* y, int64_t count, float centre, float factor, float bias);
  /// y[p, c] = (x[p, c] - centre[c]) * factor[c] + bias[c]; y may be x.
  void (*affine_pixels)(const float* x, ptrdiff_t x_step, float* y, ptrdiff_t y_step, int64_t pixels, int64_t channels,
                        const float* centre, const float* factor, const float* bias);
};

PINNACE_LOOPS(NormalizationLoops, normalization_loops_f32)

}  // namespace pinnace::cpu
