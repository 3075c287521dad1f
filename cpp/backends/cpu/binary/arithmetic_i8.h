// add, sub and mul of 8-bit quantised values, compiled once per instruction set, to the same bits; ARM64 has one set,
// since none of its later instructions does these faster. Plain pointers and sizes only.
#pragma once

#include "backends/cpu/simd/stored_i8.h"

namespace pinnace::cpu {

enum class BinaryI8 : int32_t { kAdd, kSub, kMul };

/// y[p, c] = a[p, c] op b[p, c] in float32, quantised. Steps from pixel to pixel and from channel to channel (0 or 1),
/// 0 repeats. All operands are stored signed (flip 0x80) or unsigned (0): bytes exclusive-or `flip` count as unsigned.
/// y may be a or b.
struct BinaryRowsI8 {
  BinaryI8 op;
  const uint8_t *a, *b;
  ptrdiff_t a_step, b_step;
  int32_t a_channel, b_channel;
  RealI8 a_real, b_real, y_real;
  uint8_t* y;
  ptrdiff_t y_step;
  int64_t pixels, channels;
  uint8_t flip;
  StoreI8 store;  ///< zero is y_real.zero
};

using BinaryRowsLoopI8 = void(const BinaryRowsI8&);

BinaryRowsLoopI8 binary_rows_i8_generic;
#if defined(__x86_64__)
BinaryRowsLoopI8 binary_rows_i8_avx2, binary_rows_i8_avx512_vnni;
#endif

}  // namespace pinnace::cpu
