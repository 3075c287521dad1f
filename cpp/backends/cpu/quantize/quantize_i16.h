// Between floats and 16-bit integers, compiled once per instruction set of x86-64, to the same bits. Plain pointers and
// sizes only.
#pragma once

#include "backends/cpu/simd/stored_i8.h"

namespace pinnace::cpu {

struct QuantizeLoopsI16 {
  /// y[i] = x[i] / scale, rounded half to even, plus the zero point, within [low, high]; NaN gives the zero point.
  /// Integers are stored modulo 2^16.
  void (*quantize)(const float* x, RealI8 real, int32_t low, int32_t high, uint16_t* y, int64_t n);
  /// y[i] = (x[i] - zero) * scale, x of int16 or uint16.
  void (*dequantize_signed)(const int16_t* x, RealI8 real, float* y, int64_t n);
  void (*dequantize_unsigned)(const uint16_t* x, RealI8 real, float* y, int64_t n);
};

#if defined(__x86_64__)
extern const QuantizeLoopsI16 quantize_loops_i16_avx2, quantize_loops_i16_avx512_vnni;
#endif

}  // namespace pinnace::cpu
