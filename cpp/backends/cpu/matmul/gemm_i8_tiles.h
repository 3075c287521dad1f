// The 8-bit matrix product that convolutions, gemm and mat_mul share: unsigned rows read where they lie, signed weights
// packed, sums in int32 modulo 2^32, results rounded to 8 bits before a tile leaves the registers. Compiled once per
// instruction set, to the same bits. Plain pointers and sizes only, so that no inline function of another header is
// compiled with flags that another processor cannot run.
#pragma once

#include "backends/cpu/simd/stored_i8.h"

namespace pinnace::cpu {

/// Another image that is added to a product before its bytes are stored: the product is rounded to `own` first, then
/// float32 sums of both are stored with `scale`, to the bits of the two operators one after the other.
struct AddedI8 {
  const uint8_t* at = nullptr;  ///< unsigned, as c; null: nothing is added
  ptrdiff_t row, run;           ///< as a_row and a_run
  RealI8 own, other;
  float scale;
};

/// For one panel of packed columns: sum(m, n) = bias[n] + sum over k of a(m, k) * b(k, n), stored as c[m, n].
///
/// Rows are never gathered. Row m begins at a + m * a_row; its elements lie in blocks of 4 * quads, block i `blocks[i]`
/// bytes from the row's begin. Weights of elements that only fill up a quad are zero, so these may be anything. M rows
/// are a run, of which there are several: rows of an image.
struct GemmRowsI8 {
  const uint8_t* a;
  ptrdiff_t a_row;
  const ptrdiff_t* blocks;
  int64_t block_count, quads;
  const std::byte* b;  ///< a panel: int32 bias[width], float m[width], int8 weights as weight_at has them
  uint8_t* c;
  ptrdiff_t c_row;
  int32_t* sums;  ///< not null: sums are stored here instead, with row stride c_row
  int64_t M;
  int64_t runs = 1;
  ptrdiff_t a_run, c_run;  ///< bytes from run to run, or sums
  int32_t columns;         ///< of c that may be stored
  StoreI8 store;
  AddedI8 added;
  /// x86-64: not null where weights have zero points: row_sums[m] * weight_zeros[n] is taken from sum(m, n), modulo
  /// 2^32; M sums a run, one run after the other, and as many zeros as the panel is wide.
  const int32_t* row_sums;
  const int32_t* weight_zeros;
};

/// Columns are packed in panels of `nr`, the last one as wide as is left, rounded up to `step`.
struct GemmTilesI8 {
  int32_t nr, step;
  void (*rows)(const GemmRowsI8& g, int32_t width);
  int32_t activation_offset;  ///< what activations are taken less, for which packed biases make up
  int32_t together;           ///< weights of a column stand by 1, by 4, or by 8 where blocks have even numbers of quads
  bool weight_zeros = false;  ///< rows() knows GemmRowsI8::row_sums
};

/// The byte, behind bias and m of a panel, of the weight of element k of column j. `quads` are those of a block.
static constexpr int64_t weight_at(const GemmTilesI8& g, int64_t quads, int64_t width, int64_t j, int64_t k) {
  const int64_t together = g.together == 8 && quads % 2 != 0 ? 4 : g.together;
  return (k / together * width + j) * together + k % together;
}

/// Width of the panel that begins at column n of N.
static constexpr int64_t panel_width(const GemmTilesI8& g, int64_t n, int64_t N) {
  const int64_t left = (N - n + g.step - 1) / g.step * g.step;
  return left < g.nr ? left : g.nr;
}
/// All columns with those that fill up the last panel.
static constexpr int64_t padded_columns(const GemmTilesI8& g, int64_t N) {
  return (N + g.step - 1) / g.step * g.step;
}
/// Bytes of `width` columns of a panel.
static constexpr int64_t panel_bytes(int64_t width, int64_t quads) {
  return width * (8 + 4 * quads);
}

extern const GemmTilesI8 gemm_i8_tiles_generic;
#if defined(__x86_64__)
extern const GemmTilesI8 gemm_i8_tiles_avx2, gemm_i8_tiles_avx_vnni, gemm_i8_tiles_avx512_vnni, gemm_i8_tiles_amx_int8;
#endif
#if defined(__aarch64__) || defined(PINNACE_PACKS_ARM64)
extern const GemmTilesI8 gemm_i8_tiles_neon_dotprod, gemm_i8_tiles_neon_i8mm;
#endif
#if defined(PINNACE_PACKS_ARM64)
extern const GemmTilesI8 gemm_i8_tiles_neon;
#endif

}  // namespace pinnace::cpu
