// Winograd's transforms (winograd_f32.h).
#include "backends/cpu/conv/winograd_f32.h"
#include "backends/cpu/simd/f32.h"
#include "backends/cpu/unary/activation_registers.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

#define PINNACE_UNROLL _Pragma("GCC unroll 64")

/// t = B^T d, 6 numbers or 4.
template <int OUT, class T>
inline void input_line(const T* d, T* t) {
  if constexpr (OUT == 2) {
    t[0] = d[0] - d[2];
    t[1] = d[1] + d[2];
    t[2] = d[2] - d[1];
    t[3] = d[1] - d[3];
  } else {
    t[0] = 4.0f * d[0] - 5.0f * d[2] + d[4];
    const T a = d[4] - 4.0f * d[2], b = d[3] - 4.0f * d[1];
    t[1] = a + b;
    t[2] = a - b;
    const T c = d[4] - d[2], e = 2.0f * (d[3] - d[1]);
    t[3] = c + e;
    t[4] = c - e;
    t[5] = 4.0f * d[1] - 5.0f * d[3] + d[5];
  }
}

/// y = A^T m, 6 numbers to 4 or 4 to 2.
template <int OUT, class T>
inline void output_line(const T* m, T* y) {
  if constexpr (OUT == 2) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] - m[3];
  } else {
    const T s1 = m[1] + m[2], d1 = m[1] - m[2], s2 = m[3] + m[4], d2 = m[3] - m[4];
    y[0] = m[0] + s1 + s2;
    y[1] = d1 + 2.0f * d2;
    y[2] = s1 + 4.0f * s2;
    y[3] = d1 + 8.0f * d2 + m[5];
  }
}

template <class V, int OUT>
inline void input_of(const WinogradInputF32& w, int64_t c) {
  using T = typename V::T;
  T half[OUT + 2][OUT + 2];
  PINNACE_UNROLL for (int j = 0; j < OUT + 2; ++j) {
    T d[OUT + 2], t[OUT + 2];
    PINNACE_UNROLL for (int i = 0; i < OUT + 2; ++i) d[i] = V::load(w.x + i * w.row + j * w.pitch + c);
    input_line<OUT>(d, t);
    PINNACE_UNROLL for (int i = 0; i < OUT + 2; ++i) half[i][j] = t[i];
  }
  PINNACE_UNROLL for (int i = 0; i < OUT + 2; ++i) {
    T t[OUT + 2];
    input_line<OUT>(half[i], t);
    PINNACE_UNROLL for (int j = 0; j < OUT + 2; ++j) V::store(w.v + (i * (OUT + 2) + j) * w.position + c, t[j]);
  }
}

template <class V, int OUT>
inline void output_of(const WinogradOutputF32& w, int64_t c) {
  using T = typename V::T;
  T half[OUT][OUT + 2];
  PINNACE_UNROLL for (int j = 0; j < OUT + 2; ++j) {
    T m[OUT + 2], y[OUT];
    PINNACE_UNROLL for (int i = 0; i < OUT + 2; ++i) m[i] = V::load(w.m + (i * (OUT + 2) + j) * w.position + c);
    output_line<OUT>(m, y);
    PINNACE_UNROLL for (int i = 0; i < OUT; ++i) half[i][j] = y[i];
  }
  const T bias = V::load(w.bias + c);
  const bool clamp = w.map.kind == UnaryKind::kRelu || w.map.kind == UnaryKind::kClip;
  const T low = V::all(w.map.kind == UnaryKind::kClip ? w.map.p : clamp ? 0.0f : -__builtin_inff());
  const T high = V::all(w.map.kind == UnaryKind::kClip ? w.map.q : __builtin_inff());
  PINNACE_UNROLL for (int i = 0; i < OUT; ++i) {
    if (i >= w.rows) break;
    T y[OUT];
    output_line<OUT>(half[i], y);
    float* to = w.y + i * w.row + c;
    const float* residual = w.residual ? w.residual + i * w.residual_row + c : nullptr;
    PINNACE_UNROLL for (int j = 0; j < OUT; ++j) {
      if (j >= w.columns) break;
      T sum = y[j] + bias;
      if (residual) sum += V::load(residual + j * w.residual_pitch);
      V::store(to + j * w.pitch, V::at_most(V::at_least(sum, low), high));
    }
    if (!clamp && w.map.kind != UnaryKind::kNone) map_rows<V>(w.map, to, w.pitch, w.columns);
  }
}

template <int OUT>
void input(const WinogradInputF32& w) {
  int64_t c = 0;
  for (; c + Wide::kLanes <= w.channels; c += Wide::kLanes) input_of<Wide, OUT>(w, c);
#if PINNACE_LANES > 8
  for (; c < w.channels; c += HalfWidth::kLanes) input_of<HalfWidth, OUT>(w, c);
#endif
}

template <int OUT>
void output(const WinogradOutputF32& w) {
  int64_t c = 0;
  for (; c + Wide::kLanes <= w.channels; c += Wide::kLanes) output_of<Wide, OUT>(w, c);
#if PINNACE_LANES > 8
  for (; c < w.channels; c += HalfWidth::kLanes) output_of<HalfWidth, OUT>(w, c);
#endif
}

#undef PINNACE_UNROLL

}  // namespace
}  // namespace PINNACE_ISA

const WinogradTilesF32 PINNACE_FOR_ISA(winograd_f32) = {{PINNACE_ISA::input<4>, PINNACE_ISA::output<4>},
                                                        {PINNACE_ISA::input<2>, PINNACE_ISA::output<2>}};

}  // namespace pinnace::cpu
