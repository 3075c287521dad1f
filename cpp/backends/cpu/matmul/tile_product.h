// The matrix product of tile registers (tiles.h), for elements of 4 bytes: quads of 8-bit integers or pairs of bfloat16.
// Bodies include it. Up to two tiles of rows by up to two tiles of 16 columns are summed at a time, each step one tile
// of weights deep; weights lie as the VNNI kernels pack them, [element][column], and rows are read where they lie.
//
// A virtual machine that does not save tiles when it is interrupted would give wrong sums without a word. One tile, whose
// number is not zero, is therefore loaded before a sum and looked at after it: where it is zero the sum is computed again,
// and after some times by the model.
#pragma once

#include "backends/cpu/simd/tiles.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

/// Rows of a run [0, M) cut into tiles of equal height, at most 16: the last one ends with the run, and begins within the
/// one before it.
struct RowTiles {
  int64_t M, count, rows;
  explicit RowTiles(int64_t M_) : M(M_), count((M_ + 15) / 16), rows((M_ + count - 1) / count) {}
  int64_t first(int64_t tile) const { return tile + 1 < count ? tile * rows : M - rows; }
  /// Rows of a tile that the one before it has too.
  int64_t repeated(int64_t tile) const { return tile * rows - first(tile); }
};

/// Elements of a step: the most, up to 16, of which a block of `elements` has a whole number.
inline int64_t tile_depth(int64_t elements) {
  int64_t depth = elements < 16 ? elements : 16;
  while (elements % depth != 0) --depth;
  return depth;
}

/// One panel of weights and what rows of a are like.
struct TilePanel {
  ptrdiff_t a_row;          ///< bytes
  const ptrdiff_t* blocks;  ///< of a row, each `block_unit` bytes
  ptrdiff_t block_unit;
  int64_t block_count, elements;  ///< blocks of a row; elements of a block
  const void* start;              ///< [width] numbers that sums start at
  const void* weights;            ///< [block_count * elements][width]
  int64_t width;                  ///< 8, 16, 24 or 32 columns
  const char* next;               ///< the panel that follows, of as many bytes as this
  int64_t bytes;
  int64_t rows;                   ///< of a tile
  int64_t depth;                  ///< of a step
  int64_t lines;                  ///< of 64 bytes that a step fetches of `next`
};

/// Numbers of the tile registers. Sums are 2 * (tile of rows) + (tile of columns).
constexpr int kWeights = 4, kRowsTile = 6, kCanary = 7;
constexpr int64_t kSumColumns = 32;

/// Kind::dot<Tiles, SUM, A, B>() is the instruction.
template <class Tiles, class Kind>
struct TileProduct {
  static inline void configure(const TilePanel& p) {
    TileConfig config;
    const int64_t columns[] = {p.width < 16 ? p.width : 16, p.width - 16};
    for (int n = 0; n < (p.width > 16 ? 2 : 1); ++n) {
      config.set(n, p.rows, 4 * columns[n]);
      config.set(2 + n, p.rows, 4 * columns[n]);
      config.set(kWeights + n, p.depth, 4 * columns[n]);
    }
    config.set(kRowsTile, p.rows, 4 * p.depth);
    config.set(kCanary, 1, 4);
    Tiles::configure(config);
    const uint32_t canary = kAlive;
    Tiles::template load<kCanary>(&canary, 64);
  }

  /// Sums of MT tiles of rows from `a` on by NT tiles of columns: sums[rows][kSumColumns] each. False if tiles were lost.
  template <int MT, int NT>
  static inline bool sums(TilePanel& p, const uint8_t* const (&a)[2], void* to) {
    const char* start = static_cast<const char*>(p.start);
    Tiles::template load<0>(start, 0);
    if constexpr (NT == 2) Tiles::template load<1>(start + 64, 0);
    if constexpr (MT == 2) Tiles::template load<2>(start, 0);
    if constexpr (MT == 2 && NT == 2) Tiles::template load<3>(start + 64, 0);
    const char *w = static_cast<const char*>(p.weights), *next = p.next;
    const ptrdiff_t w_row = 4 * p.width, w_step = p.depth * w_row, a_step = 4 * p.depth;
    for (int64_t block = 0; block < p.block_count; ++block) {
      const uint8_t *a0 = a[0] + p.blocks[block] * p.block_unit, *a1 = a[1] + p.blocks[block] * p.block_unit;
      for (int64_t k = 0; k < p.elements; k += p.depth) {
        for (int64_t i = 0; i < p.lines; ++i) __builtin_prefetch(next + 64 * i, 0, 2);
        next += 64 * p.lines;
        Tiles::template load<kWeights>(w, w_row);
        Tiles::template load<kRowsTile>(a0, p.a_row);
        Kind::template dot<Tiles, 0, kRowsTile, kWeights>();
        if constexpr (NT == 2) {
          Tiles::template load<kWeights + 1>(w + 64, w_row);
          Kind::template dot<Tiles, 1, kRowsTile, kWeights + 1>();
        }
        if constexpr (MT == 2) {
          Tiles::template load<kRowsTile>(a1, p.a_row);
          Kind::template dot<Tiles, 2, kRowsTile, kWeights>();
          if constexpr (NT == 2) Kind::template dot<Tiles, 3, kRowsTile, kWeights + 1>();
        }
        w += w_step;
        a0 += a_step;
        a1 += a_step;
      }
    }
    p.next = next;
    constexpr ptrdiff_t kRow = 4 * kSumColumns;
    char *first = static_cast<char*>(to), *second = first + p.rows * kRow;
    Tiles::template store<0>(first, kRow);
    if constexpr (NT == 2) Tiles::template store<1>(first + 64, kRow);
    if constexpr (MT == 2) Tiles::template store<2>(second, kRow);
    if constexpr (MT == 2 && NT == 2) Tiles::template store<3>(second + 64, kRow);
    uint32_t canary = 0;
    Tiles::template store<kCanary>(&canary, 64);
    return canary == kAlive;
  }

  /// The same of `tiles` tiles of rows, until no tile was lost.
  static inline void safe_sums(TilePanel& p, int tiles, const uint8_t* const (&a)[2], void* to) {
    if (__builtin_expect(attempt(p, tiles, a, to), 1)) return;
    again(p, tiles, a, to);
  }

 private:
  static constexpr uint32_t kAlive = 0x5eed711e;

  static inline bool attempt(TilePanel& p, int tiles, const uint8_t* const (&a)[2], void* to) {
    if (p.width > 16) return tiles == 2 ? sums<2, 2>(p, a, to) : sums<1, 2>(p, a, to);
    return tiles == 2 ? sums<2, 1>(p, a, to) : sums<1, 1>(p, a, to);
  }
  static __attribute__((noinline, cold)) void again(TilePanel& p, int tiles, const uint8_t* const (&a)[2], void* to) {
    constexpr int kAttempts = 8;
    for (int i = 0; i < kAttempts; ++i) {
      note_lost_tiles();
      configure(p);
      if (attempt(p, tiles, a, to)) return;
    }
    // The model's registers are memory, which nothing loses.
    TileProduct<ModelTiles, Kind>::configure(p);
    static_cast<void>(TileProduct<ModelTiles, Kind>::attempt(p, tiles, a, to));
    configure(p);
  }
  template <class, class>
  friend struct TileProduct;
};

/// Every tile of `runs` runs of M rows, in pairs: finish(sums, run, first, rows) for each, with sums[rows][kSumColumns] of
/// rows [first, first + rows) of a run, each row once.
template <class Kind, class Finish>
void for_tiles(TilePanel p, const uint8_t* a, ptrdiff_t a_run, int64_t M, int64_t runs, Finish finish) {
  using Product = TileProduct<Tiles, Kind>;
  const RowTiles tiles(M);
  p.rows = tiles.rows;
  p.depth = tile_depth(p.elements);
  const int64_t steps = (tiles.count * runs + 1) / 2 * p.block_count * (p.elements / p.depth);
  p.lines = (p.bytes / 64 + steps - 1) / steps;
  Product::configure(p);
  alignas(64) char sums[2 * 16 * kSumColumns * 4];
  int64_t run[2] = {0, 0}, tile[2] = {0, 0};
  const int64_t total = tiles.count * runs;
  for (int64_t t = 0; t < total; t += 2) {
    const int count = t + 1 < total ? 2 : 1;
    run[1] = run[0];
    tile[1] = tile[0] + 1;
    if (tile[1] == tiles.count) tile[1] = 0, ++run[1];
    const auto place = [&](int i) { return a + run[i] * a_run + tiles.first(tile[i]) * p.a_row; };
    const uint8_t* const rows[2] = {place(0), place(count - 1)};
    Product::safe_sums(p, count, rows, sums);
    for (int i = 0; i < count; ++i) {
      const int64_t repeated = tiles.repeated(tile[i]);
      finish(sums + (i * tiles.rows + repeated) * kSumColumns * 4, run[i], tiles.first(tile[i]) + repeated,
             tiles.rows - repeated);
    }
    run[0] = run[1];
    tile[0] = tile[1] + 1;
    if (tile[0] == tiles.count) tile[0] = 0, ++run[0];
  }
  Tiles::release();
}

}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
