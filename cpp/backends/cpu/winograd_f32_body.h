// Body of winograd_f32_<level>.cc, compiled once per instruction set; see gemm_f32_tiles_body.h.

#include "backends/cpu/simd_f32.h"
#include "backends/cpu/winograd_f32.h"

namespace pinnace {
namespace PINNACE_LEVEL {
namespace {

#define PINNACE_UNROLL _Pragma("GCC unroll 64")

/// t = B^T d, 6 numbers.
template <class T>
inline void input_line(const T* d, T* t) {
  t[0] = 4.0f * d[0] - 5.0f * d[2] + d[4];
  const T a = d[4] - 4.0f * d[2], b = d[3] - 4.0f * d[1];
  t[1] = a + b;
  t[2] = a - b;
  const T c = d[4] - d[2], e = 2.0f * (d[3] - d[1]);
  t[3] = c + e;
  t[4] = c - e;
  t[5] = 4.0f * d[1] - 5.0f * d[3] + d[5];
}

/// y = A^T m, 6 numbers to 4.
template <class T>
inline void output_line(const T* m, T* y) {
  const T s1 = m[1] + m[2], d1 = m[1] - m[2], s2 = m[3] + m[4], d2 = m[3] - m[4];
  y[0] = m[0] + s1 + s2;
  y[1] = d1 + 2.0f * d2;
  y[2] = s1 + 4.0f * s2;
  y[3] = d1 + 8.0f * d2 + m[5];
}

template <class V>
inline void input_of(const WinogradInputF32& w, int64_t c) {
  using T = typename V::T;
  T half[6][6];
  PINNACE_UNROLL for (int j = 0; j < 6; ++j) {
    T d[6], t[6];
    PINNACE_UNROLL for (int i = 0; i < 6; ++i) d[i] = V::load(w.x + i * w.row + j * w.pitch + c);
    input_line(d, t);
    PINNACE_UNROLL for (int i = 0; i < 6; ++i) half[i][j] = t[i];
  }
  PINNACE_UNROLL for (int i = 0; i < 6; ++i) {
    T t[6];
    input_line(half[i], t);
    PINNACE_UNROLL for (int j = 0; j < 6; ++j) V::store(w.v + (i * 6 + j) * w.position + c, t[j]);
  }
}

template <class V>
inline void output_of(const WinogradOutputF32& w, int64_t c) {
  using T = typename V::T;
  T half[4][6];
  PINNACE_UNROLL for (int j = 0; j < 6; ++j) {
    T m[6], y[4];
    PINNACE_UNROLL for (int i = 0; i < 6; ++i) m[i] = V::load(w.m + (i * 6 + j) * w.position + c);
    output_line(m, y);
    PINNACE_UNROLL for (int i = 0; i < 4; ++i) half[i][j] = y[i];
  }
  const T bias = V::load(w.bias + c);
  const bool clamp = w.map.kind == MapKind::kRelu || w.map.kind == MapKind::kClip;
  const T low = V::all(w.map.kind == MapKind::kClip ? w.map.a : clamp ? 0.0f : -__builtin_inff());
  const T high = V::all(w.map.kind == MapKind::kClip ? w.map.b : __builtin_inff());
  PINNACE_UNROLL for (int i = 0; i < 4; ++i) {
    if (i >= w.rows) break;
    T y[4];
    output_line(half[i], y);
    float* to = w.y + i * w.row + c;
    const float* residual = w.residual ? w.residual + i * w.residual_row + c : nullptr;
    PINNACE_UNROLL for (int j = 0; j < 4; ++j) {
      if (j >= w.columns) break;
      T sum = y[j] + bias;
      if (residual) sum += V::load(residual + j * w.residual_pitch);
      V::store(to + j * w.pitch, V::at_most(V::at_least(sum, low), high));
    }
    if (!clamp && w.map.kind != MapKind::kNone) map_rows<V>(w.map, to, w.pitch, w.columns);
  }
}

void input(const WinogradInputF32& w) {
  int64_t c = 0;
  for (; c + Wide::kLanes <= w.channels; c += Wide::kLanes) input_of<Wide>(w, c);
#if PINNACE_LANES > 8
  for (; c < w.channels; c += Half::kLanes) input_of<Half>(w, c);
#endif
}

void output(const WinogradOutputF32& w) {
  int64_t c = 0;
  for (; c + Wide::kLanes <= w.channels; c += Wide::kLanes) output_of<Wide>(w, c);
#if PINNACE_LANES > 8
  for (; c < w.channels; c += Half::kLanes) output_of<Half>(w, c);
#endif
}

#undef PINNACE_UNROLL

}  // namespace
}  // namespace PINNACE_LEVEL

#define PINNACE_NAME_(level) winograd_f32_##level
#define PINNACE_NAME(level) PINNACE_NAME_(level)
const WinogradF32 PINNACE_NAME(PINNACE_LEVEL) = {PINNACE_LEVEL::input, PINNACE_LEVEL::output};

}  // namespace pinnace
