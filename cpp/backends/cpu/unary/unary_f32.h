// Float32 unary functions that no other kernel fuses, and powers and remainders of two numbers, compiled once per
// instruction set. Plain pointers and sizes only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/unary/activation_f32.h"

namespace pinnace::cpu {

/// x^y as C's pow; the remainder of x / y with the sign of y (of a quotient rounded down), or that of x.
enum class PowerOrModKind : int32_t { kPower, kFloorMod, kTruncMod };

struct UnaryLoopsF32 {
  /// y[i] = f(x[i]) for functions of use ALONE and POWER (ops/unary.inc) and kNone; y may be x. Relative error below
  /// 4e-7 (kWholePower: 5e-7), of sines and tangents beside their roots too. kRoot and kInverseRoot are pow(x, 0.5) and
  /// pow(x, -0.5), which differ from roots at -0 and -inf.
  void (*map)(const UnaryF32& m, const float* x, float* y, int64_t count);
  /// z[i] = x[i * x_step] op y[i * y_step], steps 0 or 1; z may be x or y where that step is 1. Computed in double, so
  /// that powers are within 7e-8 and remainders exact.
  void (*pair)(PowerOrModKind kind, const float* x, int x_step, const float* y, int y_step, float* z, int64_t count);
};

extern const UnaryLoopsF32 unary_loops_f32_generic;
#if defined(__x86_64__)
extern const UnaryLoopsF32 unary_loops_f32_avx2, unary_loops_f32_avx512;
#endif

}  // namespace pinnace::cpu
