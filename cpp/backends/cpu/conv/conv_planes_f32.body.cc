// The loops of conv_planes_f32.h.
#include "backends/cpu/conv/conv_planes_f32.h"
#include "backends/cpu/simd/f32.h"
#include "backends/cpu/unary/activation_registers.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

constexpr int kLanes = PINNACE_LANES;
constexpr int kRows = PINNACE_TILE_ROWS;
constexpr int kColumns = 2 * kLanes;

using V = Wide::T;
inline V load(const float* p) {
  return Wide::load(p);
}
inline void store(float* p, V v) {
  Wide::store(p, v);
}
inline V splat(float x) {
  return Wide::all(x);
}
/// The map out of line, where it would be inlined many times: 40 KB of the library.
__attribute__((noinline)) V apply_apart(const UnaryF32& m, V x) {
  return activate<Wide>(m, x);
}

// ROWS x 2 registers of sums. K's loop is the whole cost: two loads of b, ROWS broadcasts of a, 2 * ROWS multiply-adds.
template <int ROWS>
inline void tile(const GemmF32& g, const float* a, const float* b, int64_t m, int64_t n) {
  V sum0[ROWS], sum1[ROWS];
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; ++r) sum0[r] = sum1[r] = V{};
  for (int64_t k = 0; k < g.K; ++k) {
    const V b0 = load(b), b1 = load(b + kLanes);
    b += kColumns;
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; ++r) {
      const V value = splat(a[r * g.a_row]);
      sum0[r] += value * b0;
      sum1[r] += value * b1;
    }
    a += g.a_k;
  }
  const int64_t columns = g.N - n < kColumns ? g.N - n : kColumns;
  V c0{}, c1{};
  if (g.column_bias) {
    if (columns == kColumns) {
      c0 = load(g.column_bias + n);
      c1 = load(g.column_bias + n + kLanes);
    } else {
      float part[kColumns] = {};
      __builtin_memcpy(part, g.column_bias + n, sizeof(float) * static_cast<size_t>(columns));
      c0 = load(part);
      c1 = load(part + kLanes);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; ++r) {
    const float bias = g.row_bias ? g.row_bias[m + r] : 0.0f;
    V y0 = sum0[r] + bias + c0, y1 = sum1[r] + bias + c1;
    if (g.map.kind != UnaryKind::kNone) {
      y0 = apply_apart(g.map, y0);
      y1 = apply_apart(g.map, y1);
    }
    float* c = g.c + (m + r) * g.c_row + n;
    if (columns == kColumns) {
      store(c, y0);
      store(c + kLanes, y1);
    } else {
      float part[kColumns];
      store(part, y0);
      store(part + kLanes, y1);
      __builtin_memcpy(c, part, sizeof(float) * static_cast<size_t>(columns));
    }
  }
}

template <int ROWS>
void tile_of(int64_t rows, const GemmF32& g, const float* a, const float* b, int64_t m, int64_t n) {
  if (rows == ROWS) {
    tile<ROWS>(g, a, b, m, n);
  } else if constexpr (ROWS > 1) {
    tile_of<ROWS - 1>(rows, g, a, b, m, n);
  }
}

void gemm(const GemmF32& g) {
  for (int64_t m = 0; m < g.M; m += kRows) {
    const float* a = g.a + m / kRows * g.a_panel;
    const int64_t rows = g.M - m < kRows ? g.M - m : kRows;
    for (int64_t n = 0; n < g.N; n += kColumns) tile_of<kRows>(rows, g, a, g.b + n * g.K, m, n);
  }
}

// Two registers of outputs at a time: every tap is one load and one multiply-add for each.
void depthwise(const DepthwiseF32& d) {
  for (int64_t oy = 0; oy < d.out_h; ++oy) {
    const float* top = d.x + oy * d.stride_y * d.row;
    for (int64_t ox = 0; ox < d.out_w; ox += kColumns) {
      V s0 = splat(d.bias), s1 = s0;
      const float* w = d.w;
      for (int64_t ky = 0; ky < d.kernel_h; ++ky) {
        const float* line = top + ky * d.dilation_y * d.row + ox;
        for (int64_t kx = 0; kx < d.kernel_w; ++kx) {
          const int64_t at = kx * d.dilation_x;
          const float* x = line + at % d.stride_x * d.phase + at / d.stride_x;
          const V value = splat(*w++);
          s0 += value * load(x);
          s1 += value * load(x + kLanes);
        }
      }
      s0 = apply_apart(d.map, s0);
      s1 = apply_apart(d.map, s1);
      float* y = d.y + oy * d.out_w + ox;
      const int64_t columns = d.out_w - ox;
      if (columns >= kColumns) {
        store(y, s0);
        store(y + kLanes, s1);
      } else {
        float part[kColumns];
        store(part, s0);
        store(part + kLanes, s1);
        __builtin_memcpy(y, part, sizeof(float) * static_cast<size_t>(columns));
      }
    }
  }
}

}  // namespace
}  // namespace PINNACE_ISA

const ConvPlanesLoops PINNACE_FOR_ISA(conv_planes_loops_f32) = {PINNACE_ISA::kRows, PINNACE_ISA::kColumns,
                                                                PINNACE_ISA::gemm, PINNACE_ISA::depthwise};

}  // namespace pinnace::cpu
