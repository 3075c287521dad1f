// The loop of depthwise_plane_f32.h.
#include "backends/cpu/conv/depthwise_plane_f32.h"
#include "backends/cpu/simd/f32.h"
#include "backends/cpu/unary/activation_registers.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

using V = Wide::T;
constexpr int kLanes = Wide::kLanes, kColumns = 2 * kLanes;

/// The map out of line, where it would be inlined many times: 40 KB of the library.
__attribute__((noinline)) V apply_apart(const UnaryF32& m, V x) {
  return activate<Wide>(m, x);
}

// Two registers of outputs at a time: every tap is one load and one multiply-add for each.
void depthwise_plane(const DepthwisePlaneF32& d) {
  for (int64_t oy = 0; oy < d.out_h; ++oy) {
    const float* top = d.x + oy * d.stride_y * d.row;
    for (int64_t ox = 0; ox < d.out_w; ox += kColumns) {
      V s0 = Wide::all(d.bias), s1 = s0;
      const float* w = d.w;
      for (int64_t ky = 0; ky < d.kernel_h; ++ky) {
        const float* line = top + ky * d.dilation_y * d.row + ox;
        for (int64_t kx = 0; kx < d.kernel_w; ++kx) {
          const int64_t at = kx * d.dilation_x;
          const float* x = line + at % d.stride_x * d.phase + at / d.stride_x;
          const V value = Wide::all(*w++);
          s0 += value * Wide::load(x);
          s1 += value * Wide::load(x + kLanes);
        }
      }
      s0 = apply_apart(d.map, s0);
      s1 = apply_apart(d.map, s1);
      float* y = d.y + oy * d.out_w + ox;
      const int64_t columns = d.out_w - ox;
      if (columns >= kColumns) {
        Wide::store(y, s0);
        Wide::store(y + kLanes, s1);
      } else {
        float part[kColumns];
        Wide::store(part, s0);
        Wide::store(part + kLanes, s1);
        __builtin_memcpy(y, part, sizeof(float) * static_cast<size_t>(columns));
      }
    }
  }
}

}  // namespace
}  // namespace PINNACE_ISA

void PINNACE_FOR_ISA(depthwise_plane_f32)(const DepthwisePlaneF32& d) {
  PINNACE_ISA::depthwise_plane(d);
}

}  // namespace pinnace::cpu
