// 8-bit matrix tiles (gemm_i8_tiles.h). A tile is MR rows by NV registers of sums; each step loads NV registers of the
// panel (quads of weights) and multiplies them by one repeated quad of every row. As in gemm_f32_tile.h the loop over
// tiles is inside.
#include "backends/cpu/matmul/gemm_i8_store.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

/// What is fetched ahead, to the second-level cache: the next panel, which follows this one. A large one is fetched
/// little by little, `step` bytes with every quad; a small one during the very last tile.
struct Ahead {
  const std::byte* next;
  ptrdiff_t step;
  bool small, last;
};

#if defined(__aarch64__)
}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
#include "backends/cpu/matmul/gemm_i8_tile_neon.h"
namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {
#else
/// Takes row sum times zero points of weights from a row of sums, modulo 2^32.
template <class V, int NV>
inline void take_zeros(const GemmRowsI8& g, int32_t row_sum, typename V::I (&sum)[NV]) {
  PINNACE_UNROLL for (int j = 0; j < NV; ++j) {
    sum[j] = V::less_product(sum[j], V::all(row_sum), V::load(g.weight_zeros + j * V::kLanes));
  }
}

/// `count` tiles, one below the other.
template <class V, int MR, int NV>
__attribute__((noinline)) void tiles(const GemmRowsI8& g, int64_t first, int64_t count, bool as_sums, Ahead ahead) {
  using I = typename V::I;
  using F = typename V::F;
  constexpr int kWidth = NV * V::kLanes;
  const auto s = static_cast<size_t>(g.a_row), s3 = 3 * s;
  const uint8_t* a_tile = g.a + first * g.a_row;
  const auto* bias = reinterpret_cast<const int32_t*>(g.b);
  const auto* scale = reinterpret_cast<const float*>(g.b) + kWidth;
  const auto* weights = reinterpret_cast<const int8_t*>(g.b) + 8 * kWidth;
  const bool whole = g.columns >= kWidth;
  const bool adds = g.added.at;
  const auto add = add_rows_of<V, NV>(g);
  const StoreI8 store = adds ? StoreI8{g.added.own.zero} : g.store;
  const bool clamps = store.low > 0 || store.high < 255;  // the packs clamp to bytes
  const int64_t bytes = panel_bytes(kWidth, g.block_count * g.quads);
  for (int64_t tile = 0; tile < count; ++tile, first += MR) {
    I sum[MR][NV];
    PINNACE_UNROLL for (int j = 0; j < NV; ++j) {
      const I start = V::load(bias + j * V::kLanes);
      PINNACE_UNROLL for (int i = 0; i < MR; ++i) sum[i][j] = start;
    }
    if (g.row_sums) {
      PINNACE_UNROLL for (int i = 0; i < MR; ++i) take_zeros<V, NV>(g, g.row_sums[first + i], sum[i]);
    }
    const int8_t* b = weights;
    if (ahead.small) ahead.next = g.b + (ahead.last && tile + 1 == count ? bytes : 0);
    for (int64_t block = 0; block < g.block_count; ++block) {
      // Up to 15 rows from three pointers, as in gemm_f32_tile.h.
      const uint8_t* p0 = a_tile + g.blocks[block];
      const uint8_t *p1 = p0 + 5 * s, *p2 = p1 + 5 * s;
      int64_t k = g.quads;
      do {
        typename V::Weights w[NV];
        PINNACE_UNROLL for (int j = 0; j < NV; ++j) w[j] = V::weights(V::load(b + 4 * j * V::kLanes));
        b += 4 * kWidth;
        __builtin_prefetch(ahead.next, 0, 2);
        if (kWidth > 16) __builtin_prefetch(ahead.next + 64, 0, 2);
        ahead.next += ahead.step;
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
    // Rounded and packed, four rows of one register of columns at a time.
    alignas(64) uint8_t part[MR * kWidth];
    uint8_t* const c = g.c + first * g.c_row;
    if (as_sums) {
      int32_t all[MR * kWidth];
      PINNACE_UNROLL for (int i = 0; i < MR; ++i) {
        PINNACE_UNROLL for (int j = 0; j < NV; ++j) V::store(all + i * kWidth + j * V::kLanes, sum[i][j]);
      }
      store_sums(g, first, MR, kWidth, all, kWidth, store, part);
      if (g.sums) continue;
    } else {
      const I zero = V::all_shorts(store.zero), low = V::all_bytes(store.low), high = V::all_bytes(store.high);
      uint8_t* const to = whole && !adds ? c : part;
      const ptrdiff_t row = whole && !adds ? g.c_row : kWidth;
      PINNACE_UNROLL for (int i = 0; i < MR; i += 4) {
        I bytes[NV];
        PINNACE_UNROLL for (int j = 0; j < NV; ++j) {
          const F m = V::load_floats(scale + j * V::kLanes);
          I four[4];
          PINNACE_UNROLL for (int r = 0; r < 4; ++r) {
            four[r] = i + r < MR ? V::requantise(sum[i + r < MR ? i + r : 0][j], m) : V::all(0);
          }
          bytes[j] = V::to_bytes(four[0], four[1], four[2], four[3], zero);
          if (clamps) bytes[j] = V::at_most_bytes(V::at_least_bytes(bytes[j], low), high);
        }
        V::template store_columns<NV>(bytes, to + i * row, row, MR - i);
      }
      if (whole && !adds) continue;
    }
    if (adds) add(g, first, MR, part, whole ? c : part, whole ? g.c_row : kWidth);
    if (!whole || !adds) store_part<kWidth>(g, first, MR, part);
  }
}
#endif

using Tiles = void (*)(const GemmRowsI8& g, int64_t first, int64_t count, bool as_sums, Ahead ahead);

/// The function of tiles of `size` rows, at most MR.
template <class V, int MR, int NV>
Tiles tiles_of(int64_t size) {
  if constexpr (MR > 1) {
    if (size < MR) return tiles_of<V, MR - 1, NV>(size);
  }
  return tiles<V, MR, NV>;
}

/// All runs of M rows, as tiles of MR rows or, to share the remainder out, fewer: 49 rows are 13 + 12 + 12 + 12, not
/// 14 + 14 + 14 + 7.
template <class V, int MR, int NV>
void rows(const GemmRowsI8& given, bool as_sums) {
  const int64_t M = given.M, count = (M + MR - 1) / MR, most = (M + count - 1) / count, full = M - count * (most - 1);
  GemmRowsI8 g = given;
  const Tiles large = tiles_of<V, MR, NV>(most), small = tiles_of<V, MR, NV>(most > 1 ? most - 1 : 1);
  const int64_t steps = g.block_count * g.quads, bytes = panel_bytes(NV * V::kLanes, steps), total = M * g.runs;
  const bool few = bytes < 40000;
  const int64_t share = bytes / total * most / steps + 1, step = few || share > 128 ? 4 * NV * V::kLanes : share;
  const auto ahead = [&](int64_t row, int64_t rows) {
    return Ahead{g.b + bytes + bytes / total * row, step, few, row + rows == total};
  };
  for (int64_t run = 0; run < given.runs; ++run) {
    large(g, 0, full, as_sums, ahead(run * M, full * most));
    if (full < count) small(g, full * most, count - full, as_sums, ahead(run * M + full * most, M - full * most));
    g.a += g.a_run;
    if (g.sums) {
      g.sums += g.c_run;
    } else {
      g.c += g.c_run;
    }
    if (g.added.at) g.added.at += g.added.run;
    if (g.row_sums) g.row_sums += M;
  }
}

constexpr int kWide = PINNACE_LANES;
#if PINNACE_VNNI
constexpr int kRows = PINNACE_REGISTERS == 32 ? 14 : 6;
#else
// x86-64: 8 registers of sums, for weights and activations need two each, for their even and odd bytes. ARM64: 16.
constexpr int kRows = 4;
#endif

void all_rows(const GemmRowsI8& g, int32_t width) {
  if (g.M < 1) return;
  const bool as_sums = g.sums || too_large(g, width);
#if defined(__aarch64__)
  rows<Quads<kWide>, kRows, 4>(g, as_sums);
#else
#if PINNACE_LANES == 16
  // Registers of half the width waste nothing where few columns are left: 24 of them take three quarters of 32's time.
  if (width == 24) return rows<Quads<8>, 8, 3>(g, as_sums);
  if (width == 8) return rows<Quads<8>, 14, 1>(g, as_sums);
#endif
  if (width == 2 * kWide) return rows<Quads<kWide>, kRows, 2>(g, as_sums);
  rows<Quads<kWide>, kRows, 1>(g, as_sums);
#endif
}

#undef PINNACE_UNROLL

}  // namespace
}  // namespace PINNACE_ISA

#if defined(__aarch64__)
const GemmTilesI8 PINNACE_FOR_ISA(gemm_i8_tiles) = {16, 16, PINNACE_ISA::all_rows, PINNACE_ISA::kActivationOffset,
                                                    PINNACE_USDOT  ? 8
                                                    : PINNACE_SDOT ? 4
                                                                   : 1};
#else
const GemmTilesI8 PINNACE_FOR_ISA(gemm_i8_tiles) = {
    2 * PINNACE_LANES, PINNACE_LANES == 16 ? 8 : PINNACE_LANES, PINNACE_ISA::all_rows, 0, 4, true};
#endif

}  // namespace pinnace::cpu
