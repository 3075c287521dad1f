// How a convolution's work is dealt to threads: blocks of rows times groups of panels. Where it is cut changes no sum.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pinnace::cpu {

/// Rows of a product that are some millions of multiply-adds, after which is looked whether to stop: a row of an image
/// may have more. products: of one row.
inline int64_t rows_between_looks(int64_t products) {
  constexpr int64_t kTiles = 168;  // whole tiles of every instruction set
  return std::max<int64_t>(1, (int64_t{1} << 23) / std::max<int64_t>(1, products) / kTiles) * kTiles;
}

/// What there is to do. A unit is what blocks are made of: a pixel, where those of an image stand at one distance, or a
/// row of pixels.
struct ConvWork {
  int64_t units, unit_bytes;  ///< bytes of input
  int64_t unit_pixels;        ///< of output
  int64_t panels;
};

struct ConvTasks {
  int64_t units, panels;
  int64_t each, row_tasks, column_tasks;
  bool by_rows;  ///< neighbouring tasks, which go to one thread, share rows, else panels

  struct Part {
    int64_t first, last, first_panel, last_panel;
  };
  int64_t count() const { return row_tasks * column_tasks; }
  Part part(int64_t task) const {
    const int64_t row = by_rows ? task / column_tasks : task % row_tasks;
    const int64_t column = by_rows ? task % column_tasks : task / row_tasks;
    return {row * each, std::min(units, (row + 1) * each), panels * column / column_tasks,
            panels * (column + 1) / column_tasks};
  }
};

inline ConvTasks conv_tasks(const ConvWork& work, int64_t threads) {
  // A block's input stays in the second-level cache while every panel passes by.
  constexpr int64_t kBlockBytes = 128 * 1024, kTilePixels = 14;
  const auto over = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const int64_t tile = work.unit_pixels == 1 ? kTilePixels : 1;
  int64_t each = std::clamp<int64_t>(kBlockBytes / std::max<int64_t>(1, work.unit_bytes), 1, work.units);
  if (threads == 1 || over(work.units, each) >= 8 * threads) {
    each = std::min(work.units, over(each, tile) * tile);
  } else {
    // Few blocks, perhaps twice as large: as many as give the busiest thread the fewest tiles.
    const int64_t least = over(over(work.units, 2 * each), threads) * threads;
    int64_t fewest = INT64_MAX, best = each;
    for (int64_t blocks = least; blocks <= least + 3 * threads; blocks += threads) {
      const int64_t size = over(work.units, blocks);
      const int64_t tiles = over(over(work.units, size), threads) * over(size, tile);
      if (tiles < fewest) best = size;
      fewest = std::min(fewest, tiles);
    }
    each = best;
  }
  ConvTasks tasks{work.units, work.panels, each, over(work.units, each), 1, true};
  if (threads == 1) return tasks;
  // The next operator mostly goes by rows too, and finds in its cache what its thread made. Where rows are few, each
  // thread would read all weights for a handful of tiles.
  tasks.by_rows = work.units * work.unit_pixels >= 4 * kTilePixels * threads;
  const int64_t groups = tasks.by_rows ? over(4 * threads, tasks.row_tasks) : 16;
  tasks.column_tasks = std::min(work.panels, groups);
  return tasks;
}

}  // namespace pinnace::cpu
