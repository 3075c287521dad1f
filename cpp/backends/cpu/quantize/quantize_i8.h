// Between floats and 8-bit integers, compiled once per instruction set, to the same bits; ARM64 has one set. Plain
// pointers and sizes only.
#pragma once

#include "backends/cpu/simd/stored_i8.h"

namespace pinnace::cpu {

struct QuantizeLoopsI8 {
  /// y[i] = x[i] / scale, rounded and stored; NaN gives the zero point.
  void (*quantize)(const float* x, RealI8 real, uint8_t flip, uint8_t* y, int64_t n);
  /// The same of 1 to 4 planes that lie `plane` apart: four bytes for each pixel, `pitch` apart, unsigned.
  void (*quantize_quads)(const float* x, ptrdiff_t plane, int32_t planes, RealI8 real, uint8_t* y, ptrdiff_t pitch,
                         int64_t n);
  /// y[i] = (x[i] ^ flip - zero) * scale
  void (*dequantize)(const uint8_t* x, RealI8 real, uint8_t flip, float* y, int64_t n);
};

extern const QuantizeLoopsI8 quantize_loops_i8_generic;
#if defined(__x86_64__)
extern const QuantizeLoopsI8 quantize_loops_i8_avx2, quantize_loops_i8_avx512_vnni;
#endif

}  // namespace pinnace::cpu
