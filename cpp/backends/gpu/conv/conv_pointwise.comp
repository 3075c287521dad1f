#version 450
// 1 x 1 convolution of NC4HW4 buffers with stride 1: a product of weights and pixels. An invocation makes 4 pixels in
// BLOCKS blocks of channels, 16 pixels apart, so that neighbours read neighbours. Weights, bias and residual as in
// conv_nc4hw4.comp; each image may have weights of its own, weights_step vec4 apart: Winograd's positions.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#include "activation.glsl"
layout(local_size_x = 16, local_size_y = 4) in;
CONV_POINTWISE_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { S4 x[]; };
layout(set = 0, binding = 1) readonly buffer W { S4 w[]; };
layout(set = 0, binding = 2) readonly buffer Bias { S4 bias[]; };
layout(set = 0, binding = 3) readonly buffer R { S4 r[]; };
layout(set = 0, binding = 4) writeonly buffer Y { S4 y[]; };
layout(push_constant) uniform Params { CONV_POINTWISE_PARAMS } p;

void main() {
  int pixel = int(gl_WorkGroupID.x * 64 + gl_LocalInvocationID.x), m = int(gl_GlobalInvocationID.y) * BLOCKS;
  int image = int(gl_WorkGroupID.z);
  if (pixel >= p.pixels || m >= p.M4) return;
  vec4 sum[BLOCKS][4];
  int wi[BLOCKS];
  for (int k = 0; k < BLOCKS; k++) {
    int block = min(m + k, p.M4 - 1);
    vec4 start = vec4(bias[block]);
    for (int j = 0; j < 4; j++) sum[k][j] = start;
    wi[k] = image * p.weights_step + block * p.C4 * 4;
  }
  // What lies beyond the last pixel is read from it and not stored.
  int from = image * p.C4 * p.pixels;
  int at[4];
  for (int j = 0; j < 4; j++) at[j] = from + min(pixel + 16 * j, p.pixels - 1);
  for (int c = 0; c < p.C4; c++) {
    vec4 v[4];
    for (int j = 0; j < 4; j++) v[j] = vec4(x[at[j] + c * p.pixels]);
    for (int k = 0; k < BLOCKS; k++) {
      int wc = wi[k] + c * 4;
      vec4 w0 = vec4(w[wc]), w1 = vec4(w[wc + 1]), w2 = vec4(w[wc + 2]), w3 = vec4(w[wc + 3]);
      for (int j = 0; j < 4; j++) sum[k][j] += v[j].x * w0 + v[j].y * w1 + v[j].z * w2 + v[j].w * w3;
    }
  }
  for (int k = 0; k < BLOCKS; k++) {
    if (m + k >= p.M4) break;
    int to = (image * p.M4 + m + k) * p.pixels + pixel;
    for (int j = 0; j < 4; j++) {
      if (pixel + 16 * j >= p.pixels) break;
      vec4 s = sum[k][j];
      if (RESIDUAL == 1) s += vec4(r[to + 16 * j]);
      y[to + 16 * j] = S4(activate(ACT, s, p.a, p.b));
    }
  }
}
