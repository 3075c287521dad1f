#version 450
// Positions to outputs: y = act(A^T m A + bias (+ r)); r has y's shape and layout, read if RESIDUAL is 1. One channel
// of a tile per invocation.
//   m [SIDE * SIDE][M4][tiles] vec4 in 32 bits, tiles of all images
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#include "activation.glsl"
#include "winograd.glsl"
layout(local_size_x = 64) in;
WINOGRAD_OUTPUT_CONSTANTS
layout(set = 0, binding = 0) readonly buffer M { float m[]; };
layout(set = 0, binding = 1) readonly buffer Bias { S bias[]; };
layout(set = 0, binding = 2) readonly buffer R { S r[]; };
layout(set = 0, binding = 3) writeonly buffer Y { S y[]; };
layout(push_constant) uniform Params { WINOGRAD_OUTPUT_PARAMS } p;

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int lane = i % 4, tile = i / 4 % p.tiles, block = i / 4 / p.tiles;
  int image = tile / (p.down * p.across), at = tile % (p.down * p.across);
  int y0 = at / p.across * OUT, x0 = at % p.across * OUT;
  float half_way[OUT][SIDE];
  for (int k = 0; k < SIDE; k++) {
    float line[SIDE], made[OUT];
    for (int j = 0; j < SIDE; j++) line[j] = m[(j * SIDE + k) * p.count + i];
    output_line(line, made);
    for (int j = 0; j < OUT; j++) half_way[j][k] = made[j];
  }
  float start = float(bias[block * 4 + lane]);
  for (int j = 0; j < OUT; j++) {
    if (y0 + j >= p.OH) break;
    float made[OUT];
    output_line(half_way[j], made);
    int to = (((image * p.M4 + block) * p.OH + y0 + j) * p.OW + x0) * 4 + lane;
    vec4 s = vec4(start);
    for (int k = 0; k < OUT; k++) {
      s[k] += made[k];
      if (RESIDUAL == 1 && x0 + k < p.OW) s[k] += float(r[to + 4 * k]);
    }
    s = activate(ACT, s, p.a, p.b);
    for (int k = 0; k < OUT; k++) {
      if (x0 + k < p.OW) y[to + 4 * k] = S(s[k]);
    }
  }
}
