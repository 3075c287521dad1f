// The matrix product of tile registers (tiles.h), for elements of 4 bytes: quads of 8-bit integers or pairs of
// bfloat16. Bodies include it. Up to two tiles of rows by up to two tiles of 16 columns are summed at a time, each step
// one tile of weights deep; weights lie as the VNNI kernels pack them, [element][column], and rows are read where they
// lie.
//
// A virtual machine that does not save tiles when it is interrupted would give wrong sums without a word. One tile,
// whose number is not zero, is therefore loaded before a sum and looked at after it: where it is zero the sum is
// computed again, and after some times by the model.
#pragma once

#include "backends/cpu/simd/tiles.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

/// Rows of a run [0, M) cut into tiles of equal height, at most 16: the last one ends with the run, and begins within
/// the one before it.
struct RowTiles {
  int64_t M, count, rows;
  explicit RowTiles(int64_t M_) : M(M_), count((M_ + 15) / 16), rows((M_ + count - 1) / count) {}
  int64_t first(int64_t tile) const { return tile + 1 < count ? tile * rows : M - rows; }
  /// Rows of a tile that the one before it has too.
  int64_t repeated(int64_t tile) const { return tile * rows - first(tile); }
};

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
  int64_t rows;   ///< of a tile
  int64_t depth;  ///< of a step
  int64_t lines;  ///< of 64 bytes that a step fetches of `next`
};

/// Numbers of the tile registers. Sums are 2 * (tile of rows) + (tile of columns).
constexpr int kWeights = 4, kRowsTile = 6, kCanary = 7;
constexpr int64_t kSumColumns = 32;

/// Two tiles of rows, or one, and where their sums stand: sums[rows][kSumColumns] each.
struct TilePair {
  const uint8_t* a[2];
  int tiles;
  int64_t tile[2], run[2];
  char* sums;
};

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

  /// Adds steps [first, last) to a pair's sums, which begin with step 0; until no tile was lost.
  static inline void add_steps(TilePanel& p, const TilePair& pair, int64_t first, int64_t last) {
    if (__builtin_expect(!attempt(p, pair, first, last), 0)) again(p, pair, last);
  }

 private:
  static constexpr uint32_t kAlive = 0x5eed711e;

  static inline bool attempt(TilePanel& p, const TilePair& pair, int64_t first, int64_t last) {
    if (p.width > 16) {
      return pair.tiles == 2 ? sums<2, 2>(p, pair, first, last) : sums<1, 2>(p, pair, first, last);
    }
    return pair.tiles == 2 ? sums<2, 1>(p, pair, first, last) : sums<1, 1>(p, pair, first, last);
  }

  /// MT tiles of rows by NT tiles of columns. False if tiles were lost.
  template <int MT, int NT>
  static inline bool sums(TilePanel& p, const TilePair& pair, int64_t first, int64_t last) {
    constexpr ptrdiff_t kRow = 4 * kSumColumns;
    char* const sums[2] = {pair.sums, pair.sums + p.rows * kRow};
    const char* start = static_cast<const char*>(p.start);
    const bool begins = first == 0;
    const ptrdiff_t row = begins ? 0 : kRow;
    Tiles::template load<0>(begins ? start : sums[0], row);
    if constexpr (NT == 2) Tiles::template load<1>((begins ? start : sums[0]) + 64, row);
    if constexpr (MT == 2) Tiles::template load<2>(begins ? start : sums[1], row);
    if constexpr (MT == 2 && NT == 2) Tiles::template load<3>((begins ? start : sums[1]) + 64, row);
    const ptrdiff_t w_row = 4 * p.width, w_step = p.depth * w_row, a_step = 4 * p.depth;
    const int64_t block_steps = p.elements / p.depth;
    const char *w = static_cast<const char*>(p.weights) + first * w_step, *next = p.next;
    for (int64_t step = first; step < last;) {
      const int64_t block = step / block_steps, within = step % block_steps;
      const int64_t left = last - step < block_steps - within ? last - step : block_steps - within;
      const ptrdiff_t at = p.blocks[block] * p.block_unit + within * a_step;
      const uint8_t *a0 = pair.a[0] + at, *a1 = pair.a[MT - 1] + at;
      for (int64_t i = 0; i < left; ++i) {
        for (int64_t line = 0; line < p.lines; ++line, next += 64) __builtin_prefetch(next, 0, 2);
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
      step += left;
    }
    p.next = next;
    Tiles::template store<0>(sums[0], kRow);
    if constexpr (NT == 2) Tiles::template store<1>(sums[0] + 64, kRow);
    if constexpr (MT == 2) Tiles::template store<2>(sums[1], kRow);
    if constexpr (MT == 2 && NT == 2) Tiles::template store<3>(sums[1] + 64, kRow);
    uint32_t canary = 0;
    Tiles::template store<kCanary>(&canary, 64);
    return canary == kAlive;
  }

  /// All steps before `last` once more.
  static __attribute__((noinline, cold)) void again(TilePanel& p, const TilePair& pair, int64_t last) {
    constexpr int kAttempts = 8;
    for (int i = 0; i < kAttempts; ++i) {
      note_lost_tiles();
      configure(p);
      if (attempt(p, pair, 0, last)) return;
    }
    // The model's registers are memory, which nothing loses.
    TileProduct<ModelTiles, Kind>::configure(p);
    static_cast<void>(TileProduct<ModelTiles, Kind>::attempt(p, pair, 0, last));
    configure(p);
  }
  template <class, class>
  friend struct TileProduct;
};

/// Every tile of `runs` runs of M rows, in pairs: finish(sums, run, first, rows) for some rows [first, first + rows) of
/// a run at a time, with sums[rows][kSumColumns], each row once. ahead(run, first, rows), before, fetches what finish()
/// will read beside them.
///
/// Runs that are rows of an image with its border between become one, whose sums of border pixels nobody wants, where
/// that makes fewer tiles: 7 x 7 pixels are 4 tiles and not 7.
///
/// Tiles of weights and rows come from the second-level cache at half the speed of the products. A few pairs therefore
/// take turns with steps whose weights stay in the first-level cache, 16 KB, and their sums too. (Granite Rapids, 128
/// rows, K = 768: 32 ns a step instead of 39.)
template <class Kind, class Ahead, class Finish>
void for_tiles(TilePanel p, const uint8_t* a, ptrdiff_t a_run, int64_t M, int64_t runs, Ahead ahead, Finish finish) {
  using Product = TileProduct<Tiles, Kind>;
  constexpr int kPairs = 4;
  constexpr int64_t kSteps = 8, kPairBytes = 2 * 16 * kSumColumns * 4;
  const int64_t distance = runs > 1 && p.a_row > 0 && a_run % p.a_row == 0 ? a_run / p.a_row : 0;  // in rows
  const int64_t joined = (runs - 1) * distance + M;
  const bool joins = distance >= M && RowTiles(joined).count < RowTiles(M).count * runs;
  const RowTiles tiles(joins ? joined : M);
  const int64_t total = joins ? tiles.count : tiles.count * runs;
  // f(run, first, rows, rows before) for the rows of a tile that are wanted.
  const auto wanted = [&](int64_t run, int64_t first, int64_t rows, auto f) {
    if (!joins) return f(run, first, rows, int64_t{0});
    for (int64_t done = 0; done < rows;) {
      const int64_t at = first + done, x = at % distance, left = (x < M ? M : distance) - x;
      const int64_t count = left < rows - done ? left : rows - done;
      if (x < M) f(at / distance, x, count, done);
      done += count;
    }
  };
  p.rows = tiles.rows;
  p.depth = tile_depth(p.elements);
  const int64_t steps = p.block_count * (p.elements / p.depth), turns = (total + 1) / 2 * steps;
  p.lines = (p.bytes / 64 + turns - 1) / turns;
  Product::configure(p);
  alignas(64) char sums[kPairs * kPairBytes];
  TilePair pairs[kPairs];
  int64_t run = 0, tile = 0;
  for (int64_t t = 0; t < total;) {
    int count = 0;
    for (; count < kPairs && t < total; ++count) {
      TilePair& pair = pairs[count];
      pair.sums = sums + count * kPairBytes;
      for (pair.tiles = 0; pair.tiles < 2 && t < total; ++pair.tiles, ++t) {
        pair.run[pair.tiles] = run;
        pair.tile[pair.tiles] = tile;
        pair.a[pair.tiles] = a + run * a_run + tiles.first(tile) * p.a_row;
        wanted(run, tiles.first(tile), tiles.rows,
               [&](int64_t r, int64_t first, int64_t rows, int64_t) { ahead(r, first, rows); });
        if (++tile == tiles.count) tile = 0, ++run;
      }
    }
    const int64_t each = steps <= kSteps + kSteps / 2 || count == 1 ? steps : kSteps;
    for (int64_t first = 0; first < steps; first += each) {
      const int64_t last = first + each < steps ? first + each : steps;
      for (int i = 0; i < count; ++i) Product::add_steps(p, pairs[i], first, last);
    }
    for (int i = 0; i < count; ++i) {
      for (int k = 0; k < pairs[i].tiles; ++k) {
        const int64_t repeated = tiles.repeated(pairs[i].tile[k]), first = tiles.first(pairs[i].tile[k]) + repeated;
        char* own = pairs[i].sums + (k * tiles.rows + repeated) * kSumColumns * 4;
        wanted(pairs[i].run[k], first, tiles.rows - repeated, [&](int64_t r, int64_t f, int64_t rows, int64_t before) {
          finish(own + before * kSumColumns * 4, r, f, rows);
        });
      }
    }
  }
  Tiles::release();
}

}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
