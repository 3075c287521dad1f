// Convolutions of dense planes in float32: a product of gathered columns, and depthwise ones. Compiled once per
// instruction set. Plain pointers and sizes only.
#pragma once

#include "backends/cpu/unary/activation_f32.h"

namespace pinnace::cpu {

/// c[m, n] = map(sum over k of a(m, k) * b(k, n) + row_bias[m] + column_bias[n]).
/// a(m, k) = a[(m / mr) * a_panel + (m % mr) * a_row + k * a_k]. b is packed in panels of nr columns: b(k, n) =
/// b[(n / nr) * K * nr + k * nr + n % nr]; the last panel is filled up with zeros. c is row-major with row stride
/// c_row. Sums run over ascending k, whatever M and N are: splitting M or N changes no bit. bias pointers may be null.
struct GemmF32 {
  const float* a;
  ptrdiff_t a_panel, a_row, a_k;
  const float* b;
  int64_t M, N, K;
  float* c;
  ptrdiff_t c_row;
  const float* row_bias;
  const float* column_bias;
  UnaryF32 map;
};

/// One channel of a depthwise convolution. x holds the zero-padded input plane, its columns sorted by their remainder
/// modulo stride_x: column i of padded row r is x[(i % stride_x) * phase + r * row + i / stride_x]. Rows may be read up
/// to 16 floats beyond the last column used (allocate them). y is [out_h, out_w] dense.
struct DepthwiseF32 {
  const float* x;
  ptrdiff_t phase, row;
  const float* w;  ///< [kernel_h, kernel_w]
  float bias;
  float* y;
  int64_t out_h, out_w, kernel_h, kernel_w, stride_y, stride_x, dilation_y, dilation_x;
  UnaryF32 map;
};

struct ConvPlanesLoops {
  int mr, nr;  ///< rows and columns of a tile
  void (*gemm)(const GemmF32&);
  void (*depthwise)(const DepthwiseF32&);
};

extern const ConvPlanesLoops conv_planes_loops_f32_generic;
#if defined(__x86_64__)
extern const ConvPlanesLoops conv_planes_loops_f32_avx2, conv_planes_loops_f32_avx512;
#endif

}  // namespace pinnace::cpu
