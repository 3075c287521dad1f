#version 450
// Depthwise convolution of NC4HW4 buffers of int8: one filter per channel. An invocation makes 2 outputs of a row in
// one block.
//   w [C4][taps], a byte for each of four channels; c [C4][3] ivec4 as int8_conv.comp has them
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "int8.glsl"
layout(local_size_x = 8, local_size_y = 8) in;
INT8_DEPTHWISE_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) readonly buffer W { uint w[]; };
layout(set = 0, binding = 2) readonly buffer C { ivec4 c[]; };
layout(set = 0, binding = 3) writeonly buffer Y { uint y[]; };
layout(push_constant) uniform Params { INT8_DEPTHWISE_PARAMS } p;

void main() {
  int ox = int(gl_GlobalInvocationID.x) * 2, oy = int(gl_GlobalInvocationID.y), plane = int(gl_WorkGroupID.z);
  if (ox >= p.OW || oy >= p.OH) return;
  int block = plane % p.C4;
  ivec4 w_zero = c[block * 3 + 2], s0 = ivec4(0), s1 = ivec4(0);
  for (int ky = 0; ky < KH; ky++) {
    int iy = oy * SH - p.pad_y + ky * p.dil_y;
    if (iy < 0 || iy >= p.H) continue;
    int row = (plane * p.H + iy) * p.W;
    for (int kx = 0; kx < KW; kx++) {
      int ix = ox * SW - p.pad_x + kx * p.dil_x;
      ivec4 f = unpack_bytes(w[(block * KH + ky) * KW + kx]) - w_zero;
      if (ix >= 0 && ix < p.W) s0 += (unpack_bytes(x[row + ix]) - p.x_zero) * f;
      if (ix + SW >= 0 && ix + SW < p.W) s1 += (unpack_bytes(x[row + ix + SW]) - p.x_zero) * f;
    }
  }
  int to = (plane * p.OH + oy) * p.OW + ox;
  ivec4 bias = c[block * 3];
  vec4 scale = intBitsToFloat(c[block * 3 + 1]);
  y[to] = pack_bytes(requantize(s0, bias, scale, p.y_zero, p.low, p.high));
  if (ox + 1 < p.OW) y[to + 1] = pack_bytes(requantize(s1, bias, scale, p.y_zero, p.low, p.high));
}
