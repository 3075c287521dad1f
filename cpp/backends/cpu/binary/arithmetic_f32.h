// Arithmetic of two operands, of float32 and of fp16 values (T is uint16_t, their bits), compiled once per instruction
// set. Plain pointers and sizes only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pinnace::cpu {

/// kMin and kMax give NaN where either is NaN. kPrelu: a where a >= 0, else b * a.
enum class BinaryKind : int32_t { kAdd, kSub, kMul, kDiv, kMin, kMax, kPrelu };

template <class T>
struct ArithmeticLoops {
  /// y[i] = a[i * a_step] op b[i * b_step], steps 0 or 1; y may be a or b where that step is 1.
  void (*dense)(BinaryKind, const T* a, int a_step, const T* b, int b_step, T* y, int64_t count);
  /// y[p, c] = a[p, c] op b[p, c]; steps from pixel to pixel in elements, 0 repeats a pixel. y may be a or b.
  void (*pixels)(BinaryKind, const T* a, ptrdiff_t a_step, const T* b, ptrdiff_t b_step, T* y, ptrdiff_t y_step,
                 int64_t pixels, int64_t channels);
};

extern const ArithmeticLoops<float> arithmetic_loops_f32_generic;
#if defined(__x86_64__)
extern const ArithmeticLoops<float> arithmetic_loops_f32_avx2, arithmetic_loops_f32_avx512;
#endif
#if defined(__aarch64__) || defined(PINNACE_PACKS_ARM64)
extern const ArithmeticLoops<uint16_t> arithmetic_loops_f16_neon_dotprod;
#endif

}  // namespace pinnace::cpu
