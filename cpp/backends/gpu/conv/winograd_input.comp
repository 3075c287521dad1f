#version 450
// Tiles of an image to their positions: v = B^T x B, in 32 bits. One channel of a tile per invocation: 16 or 36 numbers
// in registers, and neighbours read and write neighbouring lanes.
//   v [SIDE * SIDE][C4][tiles] vec4, tiles of all images
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#include "winograd.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { S x[]; };
layout(set = 0, binding = 1) writeonly buffer V { float v[]; };
layout(push_constant) uniform Params { WINOGRAD_INPUT_PARAMS } p;

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int lane = i % 4, tile = i / 4 % p.tiles, c = i / 4 / p.tiles;
  int image = tile / (p.down * p.across), at = tile % (p.down * p.across);
  int y0 = at / p.across * OUT - p.pad_y, x0 = at % p.across * OUT - p.pad_x;
  int plane = (image * p.C4 + c) * p.H;
  float d[SIDE][SIDE];
  for (int r = 0; r < SIDE; r++) {
    for (int k = 0; k < SIDE; k++) {
      int yy = y0 + r, xx = x0 + k;
      d[r][k] = yy >= 0 && yy < p.H && xx >= 0 && xx < p.W ? float(x[((plane + yy) * p.W + xx) * 4 + lane]) : 0.0;
    }
    input_line(d[r]);
  }
  for (int k = 0; k < SIDE; k++) {
    float line[SIDE];
    for (int r = 0; r < SIDE; r++) line[r] = d[r][k];
    input_line(line);
    for (int r = 0; r < SIDE; r++) v[(r * SIDE + k) * p.count + i] = line[r];
  }
}
