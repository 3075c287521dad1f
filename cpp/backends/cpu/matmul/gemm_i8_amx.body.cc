// 8-bit matrix products on tile registers (gemm_i8_tiles.h, tile_product.h), to the bits of the other sets: sums are
// modulo 2^32, and what follows them is the same code.
#include "backends/cpu/matmul/amx.h"
#include "backends/cpu/matmul/gemm_i8_store.h"
#include "backends/cpu/matmul/tile_product.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

struct Bytes {
  template <class Tiles, int SUM, int A, int B>
  static inline void dot() {
    Tiles::template dot_bytes<SUM, A, B>();
  }
};

/// `rows` rows of sums, NV registers of V wide, from `row` on.
template <class V, int NV>
inline void finish(const GemmRowsI8& g, bool as_sums, int64_t row, int rows, const int32_t* sums) {
  using I = typename V::I;
  constexpr int kWidth = NV * V::kLanes;
  const auto* scale = reinterpret_cast<const float*>(g.b) + kWidth;
  const bool whole = g.columns >= kWidth, adds = g.added.at;
  const StoreI8 store = adds ? StoreI8{g.added.own.zero} : g.store;
  const bool clamps = store.low > 0 || store.high < 255;  // the packs clamp to bytes
  alignas(64) uint8_t part[16 * kWidth];
  uint8_t* const c = g.c + row * g.c_row;
  uint8_t* const to = whole && !adds && !as_sums ? c : part;
  const ptrdiff_t to_row = to == c ? g.c_row : kWidth;
  if (as_sums) {
    store_sums(g, row, rows, kWidth, sums, kSumColumns, store, part);
    if (g.sums) return;
  } else {
    const I zero = V::all_shorts(store.zero), low = V::all_bytes(store.low), high = V::all_bytes(store.high);
    for (int i = 0; i < rows; i += 4) {
      I bytes[NV];
      PINNACE_UNROLL for (int j = 0; j < NV; ++j) {
        const auto m = V::load_floats(scale + j * V::kLanes);
        I four[4];
        PINNACE_UNROLL for (int r = 0; r < 4; ++r) {
          const int at = i + r < rows ? i + r : i;
          four[r] = V::requantise(V::load(sums + at * kSumColumns + j * V::kLanes), m);
        }
        bytes[j] = V::to_bytes(four[0], four[1], four[2], four[3], zero);
        if (clamps) bytes[j] = V::at_most_bytes(V::at_least_bytes(bytes[j], low), high);
      }
      V::template store_columns<NV>(bytes, to + i * to_row, to_row, rows - i < 4 ? rows - i : 4);
    }
    if (to == c) return;
  }
  if (adds) {
    add_rows_of<V, NV>(g)(g, row, rows, part, whole ? c : part, whole ? g.c_row : kWidth);
    if (whole) return;
  }
  store_part<kWidth>(g, row, rows, part);
}

/// Takes row sums times zero points of weights from `rows` rows of sums, modulo 2^32.
void take_zeros(const GemmRowsI8& g, const int32_t* row_sums, int64_t rows, int32_t width, int32_t* sums) {
  auto* left = reinterpret_cast<uint32_t*>(sums);
  for (int64_t i = 0; i < rows; ++i, left += kSumColumns) {
    for (int32_t j = 0; j < width; ++j) {
      left[j] -= static_cast<uint32_t>(row_sums[i]) * static_cast<uint32_t>(g.weight_zeros[j]);
    }
  }
}

template <class V, int NV>
__attribute__((noinline)) void panel(const GemmRowsI8& g) {
  constexpr int kWidth = NV * V::kLanes;
  const bool as_sums = g.sums || too_large(g, kWidth);
  const int64_t bytes = panel_bytes(kWidth, g.block_count * g.quads);
  const TilePanel p{.a_row = g.a_row,
                    .blocks = g.blocks,
                    .block_unit = 1,
                    .block_count = g.block_count,
                    .elements = g.quads,
                    .start = g.b,
                    .weights = g.b + 8 * kWidth,
                    .width = kWidth,
                    .next = reinterpret_cast<const char*>(g.b) + bytes,
                    .bytes = bytes};
  const auto nothing = [](int64_t, int64_t, int64_t) {};
  const auto finish_tile = [&](void* tile, int64_t run, int64_t row, int64_t rows) {
    auto* const sums = static_cast<int32_t*>(tile);
    GemmRowsI8 one = g;
    if (one.sums) {
      one.sums += run * g.c_run;
    } else {
      one.c += run * g.c_run;
    }
    if (one.added.at) one.added.at += run * g.added.run;
    if (g.row_sums) take_zeros(g, g.row_sums + run * g.M + row, rows, kWidth, sums);
    finish<V, NV>(one, as_sums, row, static_cast<int>(rows), sums);
  };
  for_tiles<Bytes>(p, g.a, g.a_run, g.M, g.runs, nothing, finish_tile);
}

void rows(const GemmRowsI8& g, int32_t width) {
  if (g.M < 1 || g.runs < 1) return;
#if PINNACE_LANES == 16
  constexpr int kWide = 16, kNarrow = 8;
#else
  constexpr int kWide = 4, kNarrow = 4;
#endif
  switch (width) {
    case 32:
      return panel<Quads<kWide>, 32 / kWide>(g);
    case 24:
      return panel<Quads<kNarrow>, 24 / kNarrow>(g);
    case 16:
      return panel<Quads<kWide>, 16 / kWide>(g);
    default:
      return panel<Quads<kNarrow>, 8 / kNarrow>(g);
  }
}

#undef PINNACE_UNROLL

}  // namespace
}  // namespace PINNACE_ISA

GemmRowsLoopI8* const PINNACE_FOR_ISA(gemm_i8_amx) = PINNACE_ISA::rows;

}  // namespace pinnace::cpu
