// Packing and splitting of a dense matrix product; see gemm_f32.h.
#include "backends/cpu/matmul/gemm_f32.h"

#include <cstring>

#include "backends/cpu/move/strided_copy.h"
#include "backends/cpu/pace.h"

namespace pinnace::cpu {
namespace {

/// Rows of a that one task goes through for every panel: they stay in the second-level cache.
constexpr int64_t kTaskFloats = 160 * 1024;

}  // namespace

/// On Zen 4 with K = 1024: 92 GFLOP/s where rows lie one behind the other, 117 where they stand a line apart.
int64_t row_distance(int64_t M, int64_t K) {
  return M > 8 && K >= 512 && K % 1024 == 0 ? K + 16 : K;
}

void pack_panel(const float* columns, ptrdiff_t step, int64_t count, int64_t rows, int64_t width, float scale,
                float* panel) {
  transpose_floats(columns, step, panel, width, count, rows);
  if (count == width && scale == 1) return;
  for (int64_t k = 0; k < rows; ++k, panel += width) {
    for (int64_t j = 0; j < count; ++j) panel[j] *= scale;
    std::fill(panel + count, panel + width, 0.0f);
  }
}

float* narrow_rows(const GemmTilesF32& tiles, const float* rows, int64_t count, int64_t width, float* to) {
  auto* bits = reinterpret_cast<uint16_t*>(to);
  if (tiles.format != WeightFormat::kBf16Pairs) {
    const HalfKind kind = tiles.format == WeightFormat::kF16 ? HalfKind::kF16 : HalfKind::kBf16;
    half_f32_kernels_generic.narrow(kind, rows, count * width, bits);
    return to + count * width / 2;
  }
  float pairs[2 * kMostColumns];
  for (int64_t k = 0; k < count; k += 2, bits += 2 * width) {
    for (int64_t j = 0; j < width; ++j) {
      pairs[2 * j] = rows[k * width + j];
      pairs[2 * j + 1] = k + 1 < count ? rows[(k + 1) * width + j] : 0.0f;
    }
    half_f32_kernels_generic.narrow(HalfKind::kBf16, pairs, 2 * width, bits);
  }
  return to + (count + 1) / 2 * width;
}

void PackedB::pack(const GemmTilesF32& tiles, const float* b, ptrdiff_t k_step, ptrdiff_t n_step, const float* bias,
                   float scale, int64_t first_panel, int64_t last_panel, float* to) const {
  for (int64_t block = 0; block < blocks(); ++block) {
    for (int64_t p = first_panel; p < last_panel; ++p) {
      const int64_t n = p * tiles.nr, width = panel_width(tiles, n, N), columns = std::min<int64_t>(tiles.nr, N - n);
      float* panel = to + at(tiles, block, p);
      for (int64_t j = 0; j < width; ++j) panel[j] = bias && block == 0 && j < columns ? bias[n + j] : 0.0f;
      const float* begin = b + first(block) * k_step + n * n_step;
      fill_panel(tiles, count(block), width, panel + width, [&](int64_t k0, int64_t rows, float* line) {
        const float* from = begin + k0 * k_step;
        if (k_step == 1) return pack_panel(from, n_step, columns, rows, width, scale, line);
        for (int64_t k = 0; k < rows; ++k, line += width, from += k_step) {
          if (n_step == 1 && scale == 1) {
            std::memcpy(line, from, sizeof(float) * static_cast<size_t>(columns));
            std::fill(line + columns, line + width, 0.0f);
            continue;
          }
          for (int64_t j = 0; j < width; ++j) line[j] = j < columns ? from[j * n_step] * scale : 0.0f;
        }
      });
    }
  }
}

void ProductF32::block(const GemmTilesF32& tiles, int64_t m0, int64_t m1, int64_t p0, int64_t p1) const {
  const ptrdiff_t zero = 0;
  const int64_t blocks = shape.blocks(), pair = together(tiles);
  Pace pace((m1 - m0) * shape.count(0));
  for (int64_t k = 0; k < blocks; ++k) {
    for (int64_t p = p0; p < p1 && !pace.stops(); ++p) {
      const int64_t n = p * tiles.nr;
      GemmRowsF32 g{};
      g.a = a + m0 * a_row + shape.first(k) / pair;
      g.a_row = a_row;
      g.blocks = &zero;
      g.block_count = 1;
      g.k = (shape.count(k) + pair - 1) / pair;
      g.b = b + shape.at(tiles, k, p);
      g.c = c + m0 * c_row + n;
      g.c_row = c_row;
      g.residual = k > 0 ? g.c : nullptr;  // what the blocks before have summed
      g.residual_row = c_row;
      g.M = m1 - m0;
      g.columns = static_cast<int32_t>(std::min<int64_t>(tiles.nr, shape.N - n));
      g.map = k + 1 == blocks ? map : UnaryF32{};
      tiles.rows(g, static_cast<int32_t>(panel_width(tiles, n, shape.N)));
    }
  }
}

int64_t ProductF32::room_floats(const GemmTilesF32& tiles, int64_t M, int64_t K) {
  const int64_t pair = together(tiles), row = (K + pair - 1) / pair, distance = row_distance(M, row);
  return distance != row || pair > 1 ? M * distance : 0;
}

void ProductF32::run(const GemmTilesF32& tiles, const HalfF32Kernels& half, const KernelContext& context,
                     float* room) const {
  ProductF32 product = *this;
  const int64_t pair = together(tiles), length = (shape.K + pair - 1) / pair;
  const int64_t row = row_distance(M, length);
  if (room && (pair > 1 || (a_row == shape.K && row != length))) {
    context.parallel((M + 15) / 16, [&](int64_t t) {
      for (int64_t m = t * 16; m < std::min(M, t * 16 + 16); ++m) {
        const float* from = a + m * a_row;
        if (pair == 1) {
          std::memcpy(room + m * row, from, sizeof(float) * static_cast<size_t>(shape.K));
          continue;
        }
        auto* to = reinterpret_cast<uint16_t*>(room + m * row);
        half.narrow(HalfKind::kBf16, from, shape.K, to);
        if (shape.K % 2) to[shape.K] = 0;
      }
    });
    product.a = room;
    product.a_row = row;
  }
  const int64_t panels = shape.panels(tiles), depth = shape.count(0), threads = context.threads;
  int64_t row_tasks = std::max<int64_t>(1, (M * depth + kTaskFloats - 1) / kTaskFloats);
  int64_t rows = (M + row_tasks - 1) / row_tasks;
  if (rows < M) rows = std::min(M, (rows + 13) / 14 * 14);  // rows of a tile
  row_tasks = (M + rows - 1) / rows;
  int64_t column_tasks = 1;
  if (threads > 1) column_tasks = std::min(panels, std::max<int64_t>(1, (4 * threads + row_tasks - 1) / row_tasks));
  // Little work is done by whoever has it at hand: waking another thread takes as long as 500,000 multiply-adds.
  if (M * shape.N * shape.K < 64 * 1024) return product.block(tiles, 0, M, 0, panels);
  context.parallel(row_tasks * column_tasks, [&](int64_t t) {
    const int64_t m = t % row_tasks * rows, part = t / row_tasks;
    product.block(tiles, m, std::min(M, m + rows), panels * part / column_tasks, panels * (part + 1) / column_tasks);
  });
}

}  // namespace pinnace::cpu
