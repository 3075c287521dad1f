#version 450
// Convolution of NC4HW4 buffers, any window and groups; -DTRANSPOSED: its transpose. An invocation makes 4 outputs of a
// row in BLOCKS blocks of channels: 16 * BLOCKS sums in registers, every loaded pixel used BLOCKS times, every weight 4
// times. The 4 outputs of a transpose are a stride apart: the same taps reach them, from 4 neighbouring pixels.
//   w [M4][taps][count][4 lanes of input] vec4 over 4 output channels: of the `count` blocks of input that a block of
//     outputs reads, from the one where its first group begins; 0 where an input is of another group
//   y = act(sum + bias (+ r)); r has y's shape and layout, read if RESIDUAL is 1
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#include "activation.glsl"
layout(local_size_x = 8, local_size_y = 8) in;
CONV_NC4HW4_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { S4 x[]; };
layout(set = 0, binding = 1) readonly buffer W { S4 w[]; };
layout(set = 0, binding = 2) readonly buffer Bias { S4 bias[]; };
layout(set = 0, binding = 3) readonly buffer R { S4 r[]; };
layout(set = 0, binding = 4) writeonly buffer Y { S4 y[]; };
layout(push_constant) uniform Params { CONV_NC4HW4_PARAMS } p;

#ifdef TRANSPOSED
const int APART = SW;
#else
const int APART = 1;
#endif

void main() {
#ifdef TRANSPOSED
  int ox = int(gl_GlobalInvocationID.x) / SW * (4 * SW) + int(gl_GlobalInvocationID.x) % SW;
#else
  int ox = int(gl_GlobalInvocationID.x) * 4;
#endif
  int oy = int(gl_GlobalInvocationID.y);
  int blocks = (p.M4 + BLOCKS - 1) / BLOCKS;
  int image = int(gl_WorkGroupID.z) / blocks, m = int(gl_WorkGroupID.z) % blocks * BLOCKS;
  if (ox >= p.OW || oy >= p.OH) return;
  int first_c = m * 4 / p.group_m * p.group_c / 4;
  vec4 sum[BLOCKS][4];
  for (int k = 0; k < BLOCKS; k++) {
    vec4 start = vec4(bias[min(m + k, p.M4 - 1)]);
    for (int j = 0; j < 4; j++) sum[k][j] = start;
  }
  int taps = KH * KW;
  for (int ky = 0; ky < KH; ky++) {
#ifdef TRANSPOSED
    int from_y = oy + p.pad_y - ky * p.dil_y;
    if (from_y < 0 || from_y % SH != 0) continue;
    int iy = from_y / SH;
    if (iy >= p.H) continue;
#else
    int iy = oy * SH - p.pad_y + ky * p.dil_y;
    if (iy < 0 || iy >= p.H) continue;
#endif
    for (int kx = 0; kx < KW; kx++) {
#ifdef TRANSPOSED
      // Moved by whole strides to where it is positive: the first of the 4 may lie before the image.
      int before = KW * p.dil_x, from_x = ox + p.pad_x - kx * p.dil_x + before * SW;
      if (from_x % SW != 0) continue;
      int ix = from_x / SW - before;
#else
      int ix = ox * SW - p.pad_x + kx * p.dil_x;
#endif
      int tap = ky * KW + kx;
      for (int c = 0; c < p.count; c++) {
        int row = ((image * p.C4 + min(first_c + c, p.C4 - 1)) * p.H + iy) * p.W;
        vec4 v[4];
        for (int j = 0; j < 4; j++) {
#ifdef TRANSPOSED
          int at = ix + j;
#else
          int at = ix + j * SW;
#endif
          v[j] = at >= 0 && at < p.W ? vec4(x[row + at]) : vec4(0.0);
        }
        for (int k = 0; k < BLOCKS; k++) {
          int wi = ((min(m + k, p.M4 - 1) * taps + tap) * p.count + c) * 4;
          vec4 w0 = vec4(w[wi]), w1 = vec4(w[wi + 1]), w2 = vec4(w[wi + 2]), w3 = vec4(w[wi + 3]);
          for (int j = 0; j < 4; j++) sum[k][j] += v[j].x * w0 + v[j].y * w1 + v[j].z * w2 + v[j].w * w3;
        }
      }
    }
  }
  for (int k = 0; k < BLOCKS; k++) {
    if (m + k >= p.M4) break;
    int to = ((image * p.M4 + m + k) * p.OH + oy) * p.OW + ox;
    for (int j = 0; j < 4; j++) {
      if (ox + j * APART >= p.OW) break;
      vec4 s = sum[k][j];
      if (RESIDUAL == 1) s += vec4(r[to + j * APART]);
      y[to + j * APART] = S4(activate(ACT, s, p.a, p.b));
    }
  }
}
