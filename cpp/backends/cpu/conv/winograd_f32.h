// The transforms of Winograd's convolutions F(4x4, 3x3) and F(2x2, 3x3) in float32, compiled once per instruction set.
// A tile of 4 x 4 outputs comes from 6 x 6 inputs through 36 products instead of 144, one of 2 x 2 outputs from 4 x 4
// through 16 instead of 36: y = A^T [(G w G^T) . (B^T x B)] A, summed over channels before the last step, so that each
// of the 36 or 16 positions is a matrix product. Source: A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural
// Networks", arXiv:1509.09308, with the points 0, 1, -1, 2, -2 or the first three of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/loops.h"
#include "backends/cpu/unary/activation_f32.h"

namespace pinnace::cpu {

/// v[p, c] = (B^T x B)[p] for one tile, x its first pixel. channels is a multiple of 8, or of 4 where registers have 4.
struct WinogradInputF32 {
  const float* x;
  ptrdiff_t pitch, row;  ///< between pixels and rows of x
  float* v;
  ptrdiff_t position;  ///< between positions of v
  int64_t channels;
};

/// y = map(A^T m A + bias + residual) for one tile, of which `rows` x `columns` outputs are wanted.
struct WinogradOutputF32 {
  const float* m;
  ptrdiff_t position;
  const float* bias;  ///< [channels]
  float* y;
  ptrdiff_t pitch, row;
  const float* residual;  ///< null: none
  ptrdiff_t residual_pitch, residual_row;
  int64_t channels;
  int32_t rows, columns;
  UnaryF32 map;
};

struct WinogradF32 {
  void (*input)(const WinogradInputF32&);
  void (*output)(const WinogradOutputF32&);
};

/// Of 4 x 4 and of 2 x 2 outputs.
struct WinogradTilesF32 {
  WinogradF32 four, two;
};

PINNACE_LOOPS(WinogradTilesF32, winograd_f32)

}  // namespace pinnace::cpu
