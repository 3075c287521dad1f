#version 450
// Largest or mean of windows of an NC4HW4 buffer of int8, four channels per invocation. Where windows lie is listed, so
// that strided, adaptive and global pools are one kernel.
//   lists [OH][3], then [OW][3]: first place inside, the place behind the last, number of the divisor's row or column;
//   then, of means, [rows][columns][255]: the smallest sum of (byte - zero) whose mean is stored as 1, 2, ... 255
// -DNORM: what rises with the sum of a function of windows' elements, in 64-bit floats, in the reference's order.
//   numbers [256] doubles: what a byte adds; then 255 thresholds of the bytes of y
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "int8.glsl"
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) readonly buffer L { int lists[]; };
layout(set = 0, binding = 2) writeonly buffer Y { uint y[]; };
#ifdef NORM
#include "double.glsl"
layout(set = 0, binding = 3) readonly buffer Numbers { uvec2 numbers[]; };
#else
INT8_POOL_CONSTANTS
#endif
layout(push_constant) uniform Params { INT8_POOL_PARAMS } p;

void main() {
  int ox = int(gl_GlobalInvocationID.x), oy = int(gl_GlobalInvocationID.y), plane = int(gl_WorkGroupID.z);
  if (ox >= p.OW || oy >= p.OH) return;
  int ly = oy * 3, lx = (p.OH + ox) * 3;
  ivec4 v = ivec4(0);
#ifdef NORM
  uvec2 sum[4];
  for (int l = 0; l < 4; l++) sum[l] = kZeroDouble;
#endif
  for (int iy = lists[ly]; iy < lists[ly + 1]; iy += p.dil_y) {
    for (int ix = lists[lx]; ix < lists[lx + 1]; ix += p.dil_x) {
      ivec4 own = unpack_bytes(x[(plane * p.H + iy) * p.W + ix]);
#ifdef NORM
      for (int l = 0; l < 4; l++) sum[l] = add_doubles(sum[l], numbers[own[l]]);
#else
      v = MEAN == 1 ? v + own - p.x_zero : max(v, own);
#endif
    }
  }
#ifdef NORM
  for (int l = 0; l < 4; l++) {
    uvec2 at = order_of(sum[l]);
    for (int step = 128; step > 0; step /= 2) {
      if (!less64(at, numbers[256 + v[l] + step - 1])) v[l] += step;
    }
  }
#else
  if (MEAN == 1) {
    int first = (p.OH + p.OW) * 3 + (lists[ly + 2] * p.columns + lists[lx + 2]) * 255;
    ivec4 found = ivec4(0);
    for (int step = 128; step > 0; step /= 2) {
      for (int l = 0; l < 4; l++) {
        if (v[l] >= lists[first + found[l] + step - 1]) found[l] += step;
      }
    }
    v = found;
  }
#endif
  y[(plane * p.OH + oy) * p.OW + ox] = pack_bytes(v);
}
