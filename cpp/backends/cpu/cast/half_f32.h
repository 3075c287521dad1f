// Between float32 and the 16-bit floats, compiled once per instruction set. Plain pointers and sizes only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pinnace::cpu {

/// A float of 16 bits in memory.
enum class HalfKind : int32_t { kF16, kBf16 };

/// Rounded half to even; what is too large becomes infinity; NaN stays NaN; denormal numbers are kept. The same bits
/// as base/half.h, on every instruction set.
struct HalfF32Kernels {
  void (*widen)(HalfKind kind, const uint16_t* from, int64_t count, float* to);
  void (*narrow)(HalfKind kind, const float* from, int64_t count, uint16_t* to);
  /// x = widen(narrow(x)).
  void (*round)(HalfKind kind, float* x, int64_t count);
};

extern const HalfF32Kernels half_f32_kernels_generic;
#if defined(__x86_64__)
extern const HalfF32Kernels half_f32_kernels_avx2, half_f32_kernels_avx512;
extern const HalfF32Kernels half_f32_kernels_amx_bf16;  ///< those of matmul/amx.h
#endif

}  // namespace pinnace::cpu
