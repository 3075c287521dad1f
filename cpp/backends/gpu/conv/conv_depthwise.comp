#version 450
// Depthwise convolution of NC4HW4 buffers: one filter per channel. An invocation makes 4 outputs of a row in one block.
// Without stride and dilation along the row the 4 share what they read: every pixel of a row of the window is loaded
// once.
//   w [C4][taps] vec4
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#include "activation.glsl"
layout(local_size_x = 4, local_size_y = 8, local_size_z = 2) in;
CONV_DEPTHWISE_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { S4 x[]; };
layout(set = 0, binding = 1) readonly buffer W { S4 w[]; };
layout(set = 0, binding = 2) readonly buffer Bias { S4 bias[]; };
layout(set = 0, binding = 3) writeonly buffer Y { S4 y[]; };
layout(push_constant) uniform Params { CONV_DEPTHWISE_PARAMS } p;

vec4 pixel(int row, int ix) {
  return ix >= 0 && ix < p.W ? vec4(x[row + ix]) : vec4(0.0);
}

void main() {
  int ox = int(gl_GlobalInvocationID.x) * 4, oy = int(gl_GlobalInvocationID.y), plane = int(gl_GlobalInvocationID.z);
  if (ox >= p.OW || oy >= p.OH || plane >= p.planes) return;
  int c = plane % p.C4;
  vec4 s0 = vec4(bias[c]), s1 = s0, s2 = s0, s3 = s0;
  for (int ky = 0; ky < KH; ky++) {
    int iy = oy * SH - p.pad_y + ky * p.dil_y;
    if (iy < 0 || iy >= p.H) continue;
    int row = (plane * p.H + iy) * p.W, first = ox * SW - p.pad_x, taps = (c * KH + ky) * KW;
    if (KW >= 3 && SW == 1 && p.dil_x == 1) {
      // f0 to f3: the taps by which this pixel counts for each of the 4; all of them between the ends of the row.
      vec4 f0 = vec4(w[taps]), f1, f2, f3, v = pixel(row, first);
      s0 += v * f0;
      v = pixel(row, first + 1);
      f1 = f0;
      f0 = vec4(w[taps + 1]);
      s0 += v * f0;
      s1 += v * f1;
      v = pixel(row, first + 2);
      f2 = f1;
      f1 = f0;
      f0 = vec4(w[taps + 2]);
      s0 += v * f0;
      s1 += v * f1;
      s2 += v * f2;
      for (int i = 3; i < KW; i++) {
        v = pixel(row, first + i);
        f3 = f2;
        f2 = f1;
        f1 = f0;
        f0 = vec4(w[taps + i]);
        s0 += v * f0;
        s1 += v * f1;
        s2 += v * f2;
        s3 += v * f3;
      }
      v = pixel(row, first + KW);
      s1 += v * f0;
      s2 += v * f1;
      s3 += v * f2;
      v = pixel(row, first + KW + 1);
      s2 += v * f0;
      s3 += v * f1;
      s3 += pixel(row, first + KW + 2) * f0;
    } else {
      for (int kx = 0; kx < KW; kx++) {
        int ix = first + kx * p.dil_x;
        vec4 f = vec4(w[taps + kx]);
        if (ix >= 0 && ix < p.W) s0 += vec4(x[row + ix]) * f;
        if (ix + SW >= 0 && ix + SW < p.W) s1 += vec4(x[row + ix + SW]) * f;
        if (ix + 2 * SW >= 0 && ix + 2 * SW < p.W) s2 += vec4(x[row + ix + 2 * SW]) * f;
        if (ix + 3 * SW >= 0 && ix + 3 * SW < p.W) s3 += vec4(x[row + ix + 3 * SW]) * f;
      }
    }
  }
  int to = (plane * p.OH + oy) * p.OW + ox;
  y[to] = S4(activate(ACT, s0, p.a, p.b));
  if (ox + 1 < p.OW) y[to + 1] = S4(activate(ACT, s1, p.a, p.b));
  if (ox + 2 < p.OW) y[to + 2] = S4(activate(ACT, s2, p.a, p.b));
  if (ox + 3 < p.OW) y[to + 3] = S4(activate(ACT, s3, p.a, p.b));
}
