#version 450
// Depthwise convolution of images: one filter per channel. An invocation makes 2 outputs of a row in one block.
//   w [C4][taps] vec4
#extension GL_GOOGLE_include_directive : require
#include "prelude.glsl"
#include "activation.glsl"
layout(local_size_x = 8, local_size_y = 8) in;
layout(constant_id = 0) const int ACT = 0;
layout(constant_id = 1) const int KH = 3;
layout(constant_id = 2) const int KW = 3;
layout(constant_id = 3) const int SH = 1;
layout(constant_id = 4) const int SW = 1;
layout(set = 0, binding = 0) readonly buffer X { S4 x[]; };
layout(set = 0, binding = 1) readonly buffer W { S4 w[]; };
layout(set = 0, binding = 2) readonly buffer Bias { S4 bias[]; };
layout(set = 0, binding = 3) writeonly buffer Y { S4 y[]; };
layout(push_constant) uniform Params {
  int H; int W; int OH; int OW; int C4; int pad_y; int pad_x; int dil_y; int dil_x; float a; float b;
} p;

void main() {
  int ox = int(gl_GlobalInvocationID.x) * 2, oy = int(gl_GlobalInvocationID.y), plane = int(gl_WorkGroupID.z);
  if (ox >= p.OW || oy >= p.OH) return;
  int c = plane % p.C4;
  vec4 s0 = vec4(bias[c]), s1 = s0;
  for (int ky = 0; ky < KH; ky++) {
    int iy = oy * SH - p.pad_y + ky * p.dil_y;
    if (iy < 0 || iy >= p.H) continue;
    int row = (plane * p.H + iy) * p.W;
    for (int kx = 0; kx < KW; kx++) {
      int ix = ox * SW - p.pad_x + kx * p.dil_x;
      vec4 f = vec4(w[(c * KH + ky) * KW + kx]);
      if (ix >= 0 && ix < p.W) s0 += vec4(x[row + ix]) * f;
      if (ix + SW >= 0 && ix + SW < p.W) s1 += vec4(x[row + ix + SW]) * f;
    }
  }
  int to = (plane * p.OH + oy) * p.OW + ox;
  y[to] = S4(activate(ACT, s0, p.a, p.b));
  if (ox + 1 < p.OW) y[to + 1] = S4(activate(ACT, s1, p.a, p.b));
}
