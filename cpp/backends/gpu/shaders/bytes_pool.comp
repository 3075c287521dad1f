#version 450
// Largest or mean of windows of an image of bytes, four channels per invocation. Where windows lie is listed, so that
// strided, adaptive and global pools are one kernel.
//   lists [OH][3], then [OW][3]: first place inside, the place behind the last, number of the divisor's row or column;
//   then, of means, [rows][columns][255]: the smallest sum of (byte - zero) whose mean is stored as 1, 2, ... 255
#extension GL_GOOGLE_include_directive : require
#include "bytes.glsl"
layout(local_size_x = 8, local_size_y = 8) in;
layout(constant_id = 0) const int MEAN = 0;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) readonly buffer L { int lists[]; };
layout(set = 0, binding = 2) writeonly buffer Y { uint y[]; };
layout(push_constant) uniform Params { int H; int W; int OH; int OW; int dil_y; int dil_x; int columns; int x_zero; } p;

void main() {
  int ox = int(gl_GlobalInvocationID.x), oy = int(gl_GlobalInvocationID.y), plane = int(gl_WorkGroupID.z);
  if (ox >= p.OW || oy >= p.OH) return;
  int ly = oy * 3, lx = (p.OH + ox) * 3;
  ivec4 v = ivec4(0);
  for (int iy = lists[ly]; iy < lists[ly + 1]; iy += p.dil_y) {
    for (int ix = lists[lx]; ix < lists[lx + 1]; ix += p.dil_x) {
      ivec4 own = unpack_bytes(x[(plane * p.H + iy) * p.W + ix]);
      v = MEAN == 1 ? v + own - p.x_zero : max(v, own);
    }
  }
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
  y[(plane * p.OH + oy) * p.OW + ox] = pack_bytes(v);
}
