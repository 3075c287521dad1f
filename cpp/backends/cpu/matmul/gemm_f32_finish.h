// What follows a float32 product where its sums are in memory: residual, activation, and the copy to where the result
// stands. Bodies include it.
#pragma once

#include "backends/cpu/matmul/gemm_f32_tiles.h"
#include "backends/cpu/simd/f32.h"
#include "backends/cpu/unary/activation_registers.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

/// What is left to do where a tile is not whole or has an activation that is no clamp: residual, activation and copy,
/// from `tile`, which is in the nearest cache.
template <class V, int NV, class F>
inline void finish_by(const GemmRowsF32& g, const float* tile, int64_t rows, float* c, const float* residual, F f) {
  using T = typename V::T;
  for (int64_t i = 0; i < rows; ++i, tile += NV * V::kLanes, c += g.c_row) {
    for (int32_t j = 0; j < g.columns; j += V::kLanes) {
      T v = V::load(tile + j);
      if (g.columns - j >= V::kLanes) {
        if (residual) v = V::add(v, V::load(residual + j));
        V::store(c + j, f(v));
        continue;
      }
      const size_t bytes = sizeof(float) * static_cast<size_t>(g.columns - j);
      float part[V::kLanes] = {};
      if (residual) __builtin_memcpy(part, residual + j, bytes);
      v = f(V::add(v, V::load(part)));
      __builtin_memcpy(c + j, &v, bytes);
    }
    if (residual) residual += g.residual_row;
  }
}
template <class V, int NV>
__attribute__((noinline)) void finish(const GemmRowsF32& g, const float* tile, int64_t rows, float* c,
                                      const float* residual) {
  using T = typename V::T;
  switch (g.map.kind) {  // a loop of its own for what networks have in every layer
    case UnaryKind::kNone:
      return finish_by<V, NV>(g, tile, rows, c, residual, [](T x) { return x; });
    case UnaryKind::kHardSwish:
      return finish_by<V, NV>(g, tile, rows, c, residual,
                              [](T x) { return activate<V>({UnaryKind::kHardSwish, 0, 0}, x); });
    case UnaryKind::kSilu:
      return finish_by<V, NV>(g, tile, rows, c, residual, [](T x) { return activate<V>({UnaryKind::kSilu, 0, 0}, x); });
    case UnaryKind::kGelu:
      return finish_by<V, NV>(g, tile, rows, c, residual, [](T x) { return activate<V>({UnaryKind::kGelu, 0, 0}, x); });
    default:
      return finish_by<V, NV>(g, tile, rows, c, residual, [&](T x) { return activate<V>(g.map, x); });
  }
}

}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
