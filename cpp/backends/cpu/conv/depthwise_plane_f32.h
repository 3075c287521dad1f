// A channel of a depthwise convolution of dense planes in float32. Compiled once per instruction set. Plain pointers
// and sizes only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/loops.h"
#include "backends/cpu/unary/activation_f32.h"

namespace pinnace::cpu {

/// x holds the zero-padded input plane, its columns sorted by their remainder modulo stride_x: column i of padded row r
/// is x[(i % stride_x) * phase + r * row + i / stride_x]. Rows may be read up to two registers, at most 32 floats,
/// beyond the last column used (allocate them). y is [out_h, out_w] dense.
struct DepthwisePlaneF32 {
  const float* x;
  ptrdiff_t phase, row;
  const float* w;  ///< [kernel_h, kernel_w]
  float bias;
  float* y;
  int64_t out_h, out_w, kernel_h, kernel_w, stride_y, stride_x, dilation_y, dilation_x;
  UnaryF32 map;
};

using DepthwisePlaneLoop = void(const DepthwisePlaneF32&);

PINNACE_LOOPS(DepthwisePlaneLoop, depthwise_plane_f32)

}  // namespace pinnace::cpu
