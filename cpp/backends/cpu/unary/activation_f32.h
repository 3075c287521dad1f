// Activations, of float32 and of fp16 values (T is uint16_t, their bits): which there are, and their loops, compiled
// once per instruction set. Plain pointers and sizes only, so that no inline function of a header is compiled with
// flags that another processor cannot run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/unary_kind.h"

namespace pinnace::cpu {

/// A unary function (ops/unary.inc) and its parameters.
struct UnaryF32 {
  UnaryKind kind = UnaryKind::kNone;
  float p = 0, q = 0;
};

/// Accuracy: exp 3e-7 relative; sigmoid, tanh, gelu 4e-7 absolute (relative for |x| >= 0.5), silu and gelu times |x|.
/// Halves are computed in float32 and rounded.
template <class T>
struct ActivationLoops {
  /// y[i] = map(x[i]); y may be x.
  void (*map)(const UnaryF32&, const T* x, T* y, int64_t count);
};

extern const ActivationLoops<float> activation_loops_f32_generic;
#if defined(__x86_64__)
extern const ActivationLoops<float> activation_loops_f32_avx2, activation_loops_f32_avx512;
#endif
#if defined(__aarch64__) || defined(PINNACE_PACKS_ARM64)
extern const ActivationLoops<float> activation_loops_f32_sve;
extern const ActivationLoops<uint16_t> activation_loops_f16_neon_dotprod;
#endif

}  // namespace pinnace::cpu
