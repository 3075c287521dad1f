// One row of an 8-bit softmax, once per instruction set: quotients in float32, whose error is bounded, and rounded only
// where that leaves no doubt about the result. Plain pointers and sizes only.
#pragma once

#include <cstdint>

namespace pinnace::cpu {

/// exp((k - 255) * scale): each of them, and as low[k % 16] * high[k / 16].
struct SoftmaxPowersI8 {
  float each[256], low[16], high[16];
};

struct SoftmaxRowI8 {
  const SoftmaxPowersI8* powers;  ///< of x's scale
  float inverse;                  ///< 1 / y's scale
  float error;                    ///< of a quotient, as a part of it
  int32_t zero;                   ///< y's, unsigned
  uint8_t flip;                   ///< bytes exclusive-or this are unsigned
};

/// y[i] = round_half_even(exp(x[i]) / sum of exp(x) / scale) + zero, n >= 1. False: some result is too near the middle
/// of two numbers to tell, and y is not written. y may be x. line has room for n floats rounded up to 64.
using SoftmaxI8 = bool(const SoftmaxRowI8& s, const uint8_t* x, uint8_t* y, int64_t n, float* line);

SoftmaxI8 softmax_row_i8_generic;
#if defined(__x86_64__)
SoftmaxI8 softmax_row_i8_avx2, softmax_row_i8_avx512;
#endif

}  // namespace pinnace::cpu
