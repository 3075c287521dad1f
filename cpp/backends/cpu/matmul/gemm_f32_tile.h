// The float32 matrix tile of one instruction set, for weights that are floats, fp16 or bfloat16 in memory: the bodies
// that include this define PINNACE_WEIGHT as what a panel holds. A tile is MR rows by NV registers of sums; each step
// of k loads NV registers of the panel and multiplies them by one broadcast element of every row.
//
// The loop over tiles is inside the kernel: a call for every tile through a parameter block costs up to a quarter of
// the speed at K = 16 (measured on Zen 4).
#pragma once

#include "backends/cpu/matmul/gemm_f32_finish.h"
#include "backends/cpu/simd/f32.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

#define PINNACE_UNROLL _Pragma("GCC unroll 64")

using Weight = PINNACE_WEIGHT;

#if defined(__aarch64__)
}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
#include "backends/cpu/matmul/gemm_f32_tile_neon.h"
namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {
#else
/// `count` tiles, one below the other.
template <class V, int MR, int NV>
__attribute__((noinline)) void tiles(const GemmRowsF32& g, int64_t first, int64_t count) {
  using T = typename V::T;
  constexpr int kWidth = NV * V::kLanes;
  const size_t s = static_cast<size_t>(g.a_row) * sizeof(float), s3 = 3 * s;
  const char* a_tile = reinterpret_cast<const char*>(g.a + first * g.a_row);
  float* c = g.c + first * g.c_row;
  const float* residual = g.residual ? g.residual + first * g.residual_row : nullptr;
  const bool clamp = g.map.kind == UnaryKind::kRelu || g.map.kind == UnaryKind::kClip;
  const bool hard_swish = g.map.kind == UnaryKind::kHardSwish;
  const bool simple = g.columns == kWidth && (clamp || hard_swish || g.map.kind == UnaryKind::kNone);
  const T low = V::all(g.map.kind == UnaryKind::kClip ? g.map.p : clamp ? 0.0f : -__builtin_inff());
  const T high = V::all(g.map.kind == UnaryKind::kClip ? g.map.q : __builtin_inff());
  // The next panel follows this one, and is brought to the second-level cache meanwhile: a large one bit by bit, part
  // of a line in each step; one that shares the first-level cache with the rows while the last tile is computed, two
  // lines a step. (MobileNetV2 on Zen 4: the small ones cost 9 % and the large ones 5 % without.)
  const int64_t K = g.block_count * g.k, panel_rows = g.weight_rows ? g.panel_rows : K;
  const int64_t panel_bytes = kWidth * static_cast<int64_t>(sizeof(float) + panel_rows * sizeof(Weight));
  const bool small = panel_bytes < 40000;
  const int64_t share = panel_bytes / g.M * MR / K + 1;
  // One or two rows are as fast as their weights come in, which the processor fetches ahead better by itself: 33 GB/s
  // from memory instead of 21.
  const int64_t step = g.M <= 2 ? 0 : small || share > 128 ? 128 : share;
  const char* const panel = reinterpret_cast<const char*>(g.b);
  const char* next = panel + panel_bytes + panel_bytes / g.M * first;
  for (int64_t tile = 0; tile < count; ++tile) {
    // What the end of the tile reads and writes comes from far away in large images.
    PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
      PINNACE_UNROLL for (int j = 0; j < kWidth; j += 16) {
        __builtin_prefetch(c + i * g.c_row + j, 1, 3);
        if (residual) __builtin_prefetch(residual + i * g.residual_row + j, 0, 3);
      }
    }
    T sum[MR][NV];
    PINNACE_UNROLL for (int j = 0; j < NV; ++j) {
      const T bias = V::load(g.b + j * V::kLanes);
      PINNACE_UNROLL for (int i = 0; i < MR; ++i) sum[i][j] = bias;
    }
    const auto* b = reinterpret_cast<const Weight*>(g.b + kWidth);
    if (small) next = tile + 1 == count ? panel + panel_bytes : panel;
    for (int64_t block = 0; block < g.block_count; ++block) {
      // Up to 14 rows from three pointers and [p], [p + s], [p + 2s], [p + 3s], [p + 4s]: that many pointers do not fit
      // 16 registers.
      const char* p0 = a_tile + g.blocks[block] * static_cast<ptrdiff_t>(sizeof(float));
      const char *p1 = p0 + 5 * s, *p2 = p1 + 5 * s;
      if (g.weight_rows) b = reinterpret_cast<const Weight*>(g.b + kWidth) + g.weight_rows[block] * kWidth;
      int64_t k = g.k;
      do {
        T bv[NV];
        PINNACE_UNROLL for (int j = 0; j < NV; ++j) bv[j] = V::load(b + j * V::kLanes);
        __builtin_prefetch(next, 0, 2);
        __builtin_prefetch(next + 64, 0, 2);
        next += step;
        b += kWidth;
        PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
          const char* p = i < 5 ? p0 : i < 10 ? p1 : p2;
          const int r = i % 5;
          const char* q = r == 0 ? p : r == 1 ? p + s : r == 2 ? p + 2 * s : r == 3 ? p + s3 : p + 4 * s;
          const T value = V::all(*reinterpret_cast<const float*>(q));
          PINNACE_UNROLL for (int j = 0; j < NV; ++j) sum[i][j] = product_sum<V, Weight>(value, bv[j], sum[i][j]);
        }
        p0 += 4;
        if (MR > 5) p1 += 4;
        if (MR > 10) p2 += 4;
#if defined(__x86_64__)
        asm volatile("" ::"r"(p0), "r"(s), "r"(s3));  // else the compiler makes a pointer for every row, and spills
#endif
      } while (--k);
    }
    if (!simple) {
      float tile_of_sums[MR * kWidth];
      PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
        PINNACE_UNROLL for (int j = 0; j < NV; ++j) V::store(tile_of_sums + i * kWidth + j * V::kLanes, sum[i][j]);
      }
      finish<V, NV>(g, tile_of_sums, MR, c, residual);
    } else {
      if (residual) {
        PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
          PINNACE_UNROLL for (int j = 0; j < NV; ++j) {
            sum[i][j] = V::add(sum[i][j], V::load(residual + i * g.residual_row + j * V::kLanes));
          }
        }
      }
      if (hard_swish) {
        PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
          PINNACE_UNROLL for (int j = 0; j < NV; ++j) {
            V::store(c + i * g.c_row + j * V::kLanes, activate<V>({UnaryKind::kHardSwish, 0, 0}, sum[i][j]));
          }
        }
      } else {
        PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
          PINNACE_UNROLL for (int j = 0; j < NV; ++j) {
            V::store(c + i * g.c_row + j * V::kLanes, V::at_most(V::at_least(sum[i][j], low), high));
          }
        }
      }
    }
    a_tile += MR * s;
    c += MR * g.c_row;
    if (residual) residual += MR * g.residual_row;
  }
}
#endif

/// All M rows, as tiles of MR rows or, to share the remainder out, fewer: 49 rows are 13 + 12 + 12 + 12, not
/// 14 + 14 + 14 + 7.
template <class V, int MR, int NV>
void rows(const GemmRowsF32& g, int64_t first, int64_t M) {
  const int64_t count = (M + MR - 1) / MR, most = (M + count - 1) / count, full = M - count * (most - 1);
  const auto run = [&](int64_t size, int64_t n) {
    if (n == 0) return;
    if (size == MR) {
      tiles<V, MR, NV>(g, first, n);
    } else if constexpr (MR > 1) {
      rows<V, MR - 1, NV>(g, first, size * n);
    }
    first += size * n;
  };
  run(most, full);
  run(most - 1, count - full);
}

void all_rows(const GemmRowsF32& g, int32_t width) {
  if (g.M < 1) return;
#if PINNACE_LANES == 16
  switch (width) {
    case 32:
      return rows<Wide, 14, 2>(g, 0, g.M);
    case 24:
      return rows<HalfWidth, 8, 3>(g, 0, g.M);
    case 16:
      return rows<HalfWidth, 14, 2>(g, 0, g.M);
    default:
      return rows<HalfWidth, 14, 1>(g, 0, g.M);
  }
#elif PINNACE_LANES == 8
  if (width == 16) return rows<Wide, 6, 2>(g, 0, g.M);
  return rows<Wide, 12, 1>(g, 0, g.M);
#elif defined(__aarch64__)
  if (width == 16) return rows<Wide, kSixteenRows, 4>(g, 0, g.M);
  return rows<Wide, kEightRows, 2>(g, 0, g.M);
#else
  if (width == 8) return rows<Wide, 6, 2>(g, 0, g.M);
  return rows<Wide, 6, 1>(g, 0, g.M);
#endif
}

#undef PINNACE_UNROLL

constexpr GemmTilesF32 tiles_of(WeightFormat format) {
#if PINNACE_LANES == 16
  return {32, 8, all_rows, format};
#elif defined(__aarch64__)
  return {16, 8, all_rows, format};
#else
  return {2 * PINNACE_LANES, PINNACE_LANES, all_rows, format};
#endif
}

}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
