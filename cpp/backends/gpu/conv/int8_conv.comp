#version 450
// Convolution of NC4HW4 buffers of int8, any window, groups of whole blocks. An invocation makes 4 outputs of a row in
// up to two blocks of channels: every loaded pixel is used for each block, every weight 4 times.
//   w [M4][taps][C4 of the group] uvec4: 32 bits for each lane of input, in them a byte for each of 4 output channels
//   c [M4][3] ivec4: bias, bits of the multipliers, zero points of the weights
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "int8.glsl"
layout(local_size_x = 8, local_size_y = 8) in;
INT8_CONV_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) readonly buffer W { uvec4 w[]; };
layout(set = 0, binding = 2) readonly buffer C { ivec4 c[]; };
layout(set = 0, binding = 3) writeonly buffer Y { uint y[]; };
layout(push_constant) uniform Params { INT8_CONV_PARAMS } p;

void main() {
  int ox = int(gl_GlobalInvocationID.x) * 4, oy = int(gl_GlobalInvocationID.y);
  int blocks = (p.M4 + BLOCKS - 1) / BLOCKS;
  int image = int(gl_WorkGroupID.z) / blocks, m = int(gl_WorkGroupID.z) % blocks * BLOCKS;
  if (ox >= p.OW || oy >= p.OH) return;
  int first_c = m / p.group_m4 * p.group_c4, taps = KH * KW;
  ivec4 sum[2][4];
  ivec4 w_zero[2];
  for (int k = 0; k < 2; k++) {
    w_zero[k] = c[min(m + k, p.M4 - 1) * 3 + 2];
    for (int j = 0; j < 4; j++) sum[k][j] = ivec4(0);
  }
  for (int ky = 0; ky < KH; ky++) {
    int iy = oy * SH - p.pad_y + ky * p.dil_y;
    if (iy < 0 || iy >= p.H) continue;
    for (int kx = 0; kx < KW; kx++) {
      int ix = ox * SW - p.pad_x + kx * p.dil_x;
      for (int i = 0; i < p.group_c4; i++) {
        int row = ((image * p.C4 + first_c + i) * p.H + iy) * p.W;
        ivec4 v[4];
        for (int j = 0; j < 4; j++) {
          int at = ix + j * SW;
          v[j] = at >= 0 && at < p.W ? unpack_bytes(x[row + at]) - p.x_zero : ivec4(0);
        }
        for (int k = 0; k < BLOCKS; k++) {
          uvec4 words = w[(min(m + k, p.M4 - 1) * taps + ky * KW + kx) * p.group_c4 + i];
          ivec4 w0 = unpack_bytes(words.x) - w_zero[k], w1 = unpack_bytes(words.y) - w_zero[k];
          ivec4 w2 = unpack_bytes(words.z) - w_zero[k], w3 = unpack_bytes(words.w) - w_zero[k];
          for (int j = 0; j < 4; j++) sum[k][j] += v[j].x * w0 + v[j].y * w1 + v[j].z * w2 + v[j].w * w3;
        }
      }
    }
  }
  for (int k = 0; k < BLOCKS; k++) {
    if (m + k >= p.M4) break;
    int to = ((image * p.M4 + m + k) * p.OH + oy) * p.OW + ox;
    ivec4 bias = c[(m + k) * 3];
    vec4 scale = intBitsToFloat(c[(m + k) * 3 + 1]);
    for (int j = 0; j < 4; j++) {
      if (ox + j >= p.OW) break;
      y[to + j] = pack_bytes(requantize(sum[k][j], bias, scale, p.y_zero, p.low, p.high));
    }
  }
}
