// One row of a max pool over NHWC-packed tensors, of float32 and of fp16 values (T is uint16_t, their bits), compiled
// once per instruction set. Plain pointers and sizes only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/loops.h"

namespace pinnace::cpu {

/// One row of outputs of a max pool, all channels. Only taps inside x: `rows` of them down, the first at x; across,
/// output o has taps [first(o), last(o)) that start at column o * stride_x - before_x.
template <class T>
struct MaxPoolRow {
  const T* x;         ///< column 0 of the first row
  ptrdiff_t pitch;    ///< between pixels of x
  ptrdiff_t tap_row;  ///< between kernel rows: dilation_y rows of x
  T* y;
  ptrdiff_t y_pitch;
  int64_t channels, in_w, out_w;
  int64_t rows, kernel_w, stride_x, dilation_x, before_x;
};

/// NaN among the taps gives NaN; no taps give -inf.
template <class T>
using MaxPoolRowLoop = void(const MaxPoolRow<T>&);

PINNACE_LOOPS(MaxPoolRowLoop<float>, max_pool_row_f32)
MaxPoolRowLoop<uint16_t> max_pool_row_f16_neon_dotprod;  // ARM64's

}  // namespace pinnace::cpu
