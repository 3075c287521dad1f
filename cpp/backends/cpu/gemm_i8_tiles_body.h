// Body of gemm_i8_tiles_<level>.cc, compiled once per instruction set: PINNACE_LEVEL names the set and simd_i8.h has
// its registers. A tile is MR rows by NV registers of sums; each step loads NV registers of the panel (quads of
// weights) and multiplies them by one repeated quad of every row. As in gemm_f32_tiles_body.h the loop over tiles is
// inside.

#include "backends/cpu/gemm_i8_tiles.h"
#include "backends/cpu/simd_i8.h"

namespace pinnace {
namespace PINNACE_LEVEL {
namespace {

#define PINNACE_UNROLL _Pragma("GCC unroll 64")

/// A tile of sums, stored as such, or rounded one by one where multipliers are too large for registers.
template <int MR>
__attribute__((noinline)) void store_sums(const GemmRowsI8& g, int64_t row, int32_t width, const int32_t* sums) {
  const auto* scale = reinterpret_cast<const float*>(g.b) + width;
  for (int i = 0; i < MR; ++i, sums += width) {
    const int64_t at = (row + i) * g.c_row;
    if (g.sums) {
      __builtin_memcpy(g.sums + at, sums, sizeof(int32_t) * static_cast<size_t>(g.columns));
      continue;
    }
    const int32_t columns = g.columns < width ? g.columns : width;
    for (int32_t j = 0; j < columns; ++j) g.c[at + j] = requantise_one(sums[j], scale[j], g.store);
  }
}

/// Rows of bytes of which only some columns are wanted.
template <int MR, int WIDTH>
__attribute__((noinline)) void store_part(const GemmRowsI8& g, int64_t row, const uint8_t* bytes) {
  for (int i = 0; i < MR; ++i) {
    __builtin_memcpy(g.c + (row + i) * g.c_row, bytes + i * WIDTH, static_cast<size_t>(g.columns));
  }
}

#if defined(__aarch64__)
}  // namespace
}  // namespace PINNACE_LEVEL
}  // namespace pinnace
#include "backends/cpu/gemm_i8_tile_neon.h"
namespace pinnace {
namespace PINNACE_LEVEL {
namespace {
#else
/// `count` tiles, one below the other.
template <class V, int MR, int NV>
__attribute__((noinline)) void tiles(const GemmRowsI8& g, int64_t first, int64_t count, bool as_sums) {
  using I = typename V::I;
  using F = typename V::F;
  constexpr int kWidth = NV * V::kLanes;
  const auto s = static_cast<size_t>(g.a_row), s3 = 3 * s;
  const uint8_t* a_tile = g.a + first * g.a_row;
  const auto* bias = reinterpret_cast<const int32_t*>(g.b);
  const auto* scale = reinterpret_cast<const float*>(g.b) + kWidth;
  const auto* weights = reinterpret_cast<const int8_t*>(g.b) + 8 * kWidth;
  const bool whole = g.columns >= kWidth;
  for (int64_t tile = 0; tile < count; ++tile, first += MR) {
    I sum[MR][NV];
    PINNACE_UNROLL for (int j = 0; j < NV; ++j) {
      const I start = V::load(bias + j * V::kLanes);
      PINNACE_UNROLL for (int i = 0; i < MR; ++i) sum[i][j] = start;
    }
    const int8_t* b = weights;
    for (int64_t block = 0; block < g.block_count; ++block) {
      // Up to 15 rows from three pointers, as in gemm_f32_tiles_body.h.
      const uint8_t* p0 = a_tile + g.blocks[block];
      const uint8_t *p1 = p0 + 5 * s, *p2 = p1 + 5 * s;
      int64_t k = g.quads;
      do {
        typename V::Weights w[NV];
        PINNACE_UNROLL for (int j = 0; j < NV; ++j) w[j] = V::weights(V::load(b + 4 * j * V::kLanes));
        b += 4 * kWidth;
        PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
          const uint8_t* p = i < 5 ? p0 : i < 10 ? p1 : p2;
          const int r = i % 5;
          const uint8_t* q = r == 0 ? p : r == 1 ? p + s : r == 2 ? p + 2 * s : r == 3 ? p + s3 : p + 4 * s;
          const typename V::Acts acts = V::repeat(q);
          PINNACE_UNROLL for (int j = 0; j < NV; ++j) sum[i][j] = V::dot(sum[i][j], acts, w[j]);
        }
        p0 += 4;
        if (MR > 5) p1 += 4;
        if (MR > 10) p2 += 4;
#if defined(__x86_64__)
        asm volatile("" ::"r"(p0), "r"(s), "r"(s3));  // else the compiler makes a pointer for every row, and spills
#endif
      } while (--k);
    }
    a_tile += MR * s;
    if (as_sums) {
      int32_t all[MR * kWidth];
      PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
        PINNACE_UNROLL for (int j = 0; j < NV; ++j) V::store(all + i * kWidth + j * V::kLanes, sum[i][j]);
      }
      store_sums<MR>(g, first, kWidth, all);
      continue;
    }
    // Rounded and packed, four rows of one register of columns at a time.
    const I zero = V::all_shorts(g.store.zero), low = V::all_bytes(g.store.low), high = V::all_bytes(g.store.high);
    uint8_t part[MR * kWidth];
    uint8_t* to = whole ? g.c + first * g.c_row : part;
    const ptrdiff_t row = whole ? g.c_row : kWidth;
    PINNACE_UNROLL for (int j = 0; j < NV; ++j) {
      const F m = V::load_floats(scale + j * V::kLanes);
      PINNACE_UNROLL for (int i = 0; i < MR; i += 4) {
        I four[4];
        PINNACE_UNROLL for (int r = 0; r < 4; ++r) {
          four[r] = i + r < MR ? V::requantise(sum[i + r < MR ? i + r : 0][j], m) : V::all(0);
        }
        const I bytes = V::to_bytes(four[0], four[1], four[2], four[3], zero);
        V::store_rows(V::at_most_bytes(V::at_least_bytes(bytes, low), high), to + i * row + j * V::kLanes, row, MR - i);
      }
    }
    if (!whole) store_part<MR, kWidth>(g, first, part);
  }
}
#endif

/// All M rows, as tiles of MR rows or, to share the remainder out, fewer: 49 rows are 13 + 12 + 12 + 12, not
/// 14 + 14 + 14 + 7.
template <class V, int MR, int NV>
void rows(const GemmRowsI8& g, int64_t first, int64_t M, bool as_sums) {
  const int64_t count = (M + MR - 1) / MR, most = (M + count - 1) / count, full = M - count * (most - 1);
  const auto run = [&](int64_t size, int64_t n) {
    if (n == 0) return;
    if (size == MR) {
      tiles<V, MR, NV>(g, first, n, as_sums);
    } else if constexpr (MR > 1) {
      rows<V, MR - 1, NV>(g, first, size * n, as_sums);
    }
    first += size * n;
  };
  run(most, full);
  run(most - 1, count - full);
}

constexpr int kWide = PINNACE_LANES;
#if PINNACE_VNNI
constexpr int kRows = 14;
#else
// x86-64: 8 registers of sums, for weights and activations need two each, for their even and odd bytes. ARM64: 16.
constexpr int kRows = 4;
#endif

/// True if a product of sum and multiplier could be 2^31 or more, where conversions to int32 fail.
bool too_large(const GemmRowsI8& g, int32_t width) {
  using V = Quads<kWide>;
  const auto* bias = reinterpret_cast<const int32_t*>(g.b);
  const auto* scale = reinterpret_cast<const float*>(g.b) + width;
  const auto products = V::all(static_cast<float>(g.block_count * g.quads) * (4 * 255 * 128)), most = V::all(0x1p31f);
  auto largest = V::all(0.0f);
  for (int32_t j = 0; j < width; j += V::kLanes) {
    const auto start = V::to_floats(V::load(bias + j));
    const auto reach = V::larger(start, -start) + products;
    largest = V::larger(V::smaller(reach, most) * V::load_floats(scale + j), largest);
  }
  float each[V::kLanes];
  __builtin_memcpy(each, &largest, sizeof each);
  bool too_large = false;
  for (const float real : each) too_large |= !(real < 0x1p30f);
  return too_large;
}

void all_rows(const GemmRowsI8& g, int32_t width) {
  if (g.M < 1) return;
  const bool as_sums = g.sums || too_large(g, width);
#if defined(__aarch64__)
  rows<Quads<kWide>, kRows, 4>(g, 0, g.M, as_sums);
#else
  if (width == 2 * kWide) return rows<Quads<kWide>, kRows, 2>(g, 0, g.M, as_sums);
  rows<Quads<kWide>, kRows, 1>(g, 0, g.M, as_sums);
#endif
}

#undef PINNACE_UNROLL

}  // namespace
}  // namespace PINNACE_LEVEL

#define PINNACE_NAME_(level) gemm_i8_tiles_##level
#define PINNACE_NAME(level) PINNACE_NAME_(level)
#if defined(__aarch64__)
const GemmTilesI8 PINNACE_NAME(PINNACE_LEVEL) = {16, 16, PINNACE_LEVEL::all_rows, PINNACE_LEVEL::kActivationOffset,
                                                 PINNACE_USDOT  ? 8
                                                 : PINNACE_SDOT ? 4
                                                                : 1};
#else
const GemmTilesI8 PINNACE_NAME(PINNACE_LEVEL) = {2 * PINNACE_LANES, PINNACE_LANES, PINNACE_LEVEL::all_rows, 0, 4};
#endif

}  // namespace pinnace
