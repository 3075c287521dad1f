// A matrix product of dense float32 operands on the tiles of one instruction set: how b is packed, and how the work is
// split. mat_mul, gemm and attention are made of it.
#pragma once

#include <algorithm>

#include "backends/cpu/f32_isa.h"

namespace pinnace::cpu {

/// Width of the panel that begins at column n of N.
template <class T>
int64_t panel_width(const GemmTiles<T>& tiles, int64_t n, int64_t N) {
  const int64_t left = N - n;
  return left >= tiles.nr ? tiles.nr : (left + tiles.step - 1) / tiles.step * tiles.step;
}
/// Columns of all panels together.
template <class T>
int64_t padded_columns(const GemmTiles<T>& tiles, int64_t N) {
  const int64_t full = N / tiles.nr * tiles.nr;
  return full == N ? N : full + panel_width(tiles, full, N);
}

/// Elements of a row, and of a column, that stand together.
inline int64_t together(const GemmTilesF32& tiles) {
  return tiles.format == WeightFormat::kBf16Pairs ? 2 : 1;
}
/// Floats that panels of `columns` columns (padded) and K rows take, with their biases; for rows of 16 bits too.
inline int64_t panel_floats(const GemmTilesF32& tiles, int64_t columns, int64_t K) {
  if (tiles.format == WeightFormat::kF32) return columns * (1 + K);
  const int64_t rows = (K + together(tiles) - 1) / together(tiles) * together(tiles);
  return columns + columns * rows / 2;
}

/// Columns of the widest panel; rows that are narrowed at a time, an even number.
inline constexpr int64_t kMostColumns = 32, kNarrowedRows = 16;
/// Writes `count` rows of `width` floats in the format of `tiles`, which is not kF32; an odd one gets a row of zeros.
/// Returns what follows them.
float* narrow_rows(const GemmTilesF32& tiles, const float* rows, int64_t count, int64_t width, float* to);

/// A panel's weights: fill(first, count, rows) writes `count` rows of `width` floats. Returns what follows them.
template <class Fill>
float* fill_panel(const GemmTilesF32& tiles, int64_t K, int64_t width, float* to, Fill fill) {
  if (tiles.format == WeightFormat::kF32) {
    fill(0, K, to);
    return to + K * width;
  }
  float rows[kNarrowedRows * kMostColumns];
  for (int64_t k = 0; k < K; k += kNarrowedRows) {
    const int64_t count = std::min(K - k, kNarrowedRows);
    fill(k, count, rows);
    to = narrow_rows(tiles, rows, count, width, to);
  }
  return to;
}

/// b [K, N] in blocks of rows, so that a block's panel and as many rows of a stay in the second-level cache; each block
/// has a panel for every nr columns, as GemmRowsF32 wants it. Element (k, n) of b is at k * k_step + n * n_step.
struct PackedB {
  int64_t K, N;
  int64_t blocks() const { return (K + kRows - 1) / kRows; }
  int64_t first(int64_t block) const { return block * rows(); }
  int64_t count(int64_t block) const { return std::min(K, first(block + 1)) - first(block); }
  int64_t floats(const GemmTilesF32& tiles) const { return at(tiles, blocks(), 0); }
  int64_t panels(const GemmTilesF32& tiles) const { return (N + tiles.nr - 1) / tiles.nr; }
  /// Where panel p of a block begins.
  int64_t at(const GemmTilesF32& tiles, int64_t block, int64_t p) const {
    const int64_t columns = padded_columns(tiles, N), before = std::min(K, first(block));
    // Blocks before the last have an even number of rows.
    return panel_floats(tiles, columns, before) + (block - 1) * columns +
           panel_floats(tiles, p * tiles.nr, count(block));
  }
  /// Packs panels [first, last). bias [N] or null goes in front of the first block's rows; every element is multiplied
  /// by `scale`.
  void pack(const GemmTilesF32& tiles, const float* b, ptrdiff_t k_step, ptrdiff_t n_step, const float* bias,
            float scale, int64_t first_panel, int64_t last_panel, float* to) const;

 private:
  static constexpr int64_t kRows = 1024;
  int64_t rows() const { return blocks() < 2 ? K : (K + 2 * blocks() - 1) / (2 * blocks()) * 2; }
};

/// Floats from row to row at which M rows of K floats of a do not push each other out of the first-level cache: K, or a
/// line more where rows would stand whole pages apart.
int64_t row_distance(int64_t M, int64_t K);

/// panel[k * width + j] = columns[j * step + k] * scale for k in [0, rows) and j in [0, count); 0 for j from count to
/// width, which is a multiple of 4.
void pack_panel(const float* columns, ptrdiff_t step, int64_t count, int64_t rows, int64_t width, float scale,
                float* panel);

/// c = map(a b + bias), a [M, K] with rows a_row apart, c [M, N] with rows c_row apart. c overlaps neither operand.
/// block() wants a in pairs of bfloat16, a_row counting them, where `tiles` do; run() makes them.
struct ProductF32 {
  const float* a;
  ptrdiff_t a_row;
  const float* b;  ///< packed
  PackedB shape;
  float* c;
  ptrdiff_t c_row;
  int64_t M;
  UnaryF32 map;

  /// Rows [m0, m1) of panels [p0, p1). Every element's sum runs over ascending k, whatever is cut where.
  void block(const GemmTilesF32& tiles, int64_t m0, int64_t m1, int64_t p0, int64_t p1) const;
  /// All of it, on the run's threads. room: room_floats() floats, or null where that is 0. half: for pairs.
  void run(const GemmTilesF32& tiles, const HalfF32Kernels& half, const KernelContext& context, float* room) const;
  static int64_t room_floats(const GemmTilesF32& tiles, int64_t M, int64_t K);
};

}  // namespace pinnace::cpu
