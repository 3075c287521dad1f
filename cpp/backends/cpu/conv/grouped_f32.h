// Grouped convolutions of few channels a group in float32 (channels last), compiled once per instruction set. Each lane
// is an output channel, and meets the inputs of its own group one after the other: a register of pixels is spread over
// the lanes of its groups. Panels of a matrix product would be mostly empty. Plain pointers and sizes only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/loops.h"
#include "backends/cpu/unary/activation_f32.h"

namespace pinnace::cpu {

/// One row of outputs, all channels, `each` of them to a group in x as in y.
///   x        the first tap's first pixel; columns of an output stand stride_x pixels apart
///   weights  [channels / lanes][1 + kernel_h * kernel_w * each][lanes]: the first register is the bias, then kernel
///            rows, columns, and input channels of the group, each for all its output channels
/// Sums run in the order of kernel rows, then in one that depends on kernel_w and stride_x only.
struct GroupedRowF32 {
  const float* x;
  ptrdiff_t pitch;    ///< between pixels of x
  ptrdiff_t tap_row;  ///< between kernel rows: dilation_y rows of x
  const float* weights;
  float* y;
  ptrdiff_t y_pitch;
  int64_t channels;  ///< rounded up to 8, or to 4 where weights have 4 lanes
  int64_t out_w;
  int32_t each;
  int32_t kernel_h, kernel_w, stride_x, dilation_x;
  UnaryF32 map;
};

struct GroupedF32 {
  int32_t lanes;  ///< of weights
  /// True if `row` takes groups of `each` channels, and faster than a matrix product would.
  bool (*takes)(int64_t each);
  void (*row)(const GroupedRowF32&);
};

PINNACE_LOOPS(GroupedF32, grouped_f32)

}  // namespace pinnace::cpu
