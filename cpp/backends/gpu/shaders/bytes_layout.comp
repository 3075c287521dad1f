#version 450
// Between rows of quantised integers [N, C, pixels] and images [N, ceil(C / 4), pixels] of four bytes in a word.
// -DTO_ROWS: the other way. `offset`: what is added to an element in an image. Rows
// begin `base` elements after what is bound.
#extension GL_GOOGLE_include_directive : require
#define WORDS
#include "prelude.glsl"
#include "bytes.glsl"
layout(local_size_x = 64) in;
#ifdef TO_ROWS
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { int y[]; };
#else
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { uint y[]; };
#endif
layout(push_constant) uniform Params { int count; int channels; int blocks; int pixels; int offset; int base; } p;

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int pixel = i % p.pixels, block = i / p.pixels;
  int image = block / p.blocks, c = block % p.blocks * 4;
  int at = p.base + (image * p.channels + c) * p.pixels + pixel;
#ifdef TO_ROWS
  ivec4 v = unpack_bytes(x[i]);
  for (int l = 0; l < 4; l++) {
    if (c + l < p.channels) y[at + l * p.pixels] = v[l] - p.offset;
  }
#else
  ivec4 v = ivec4(0);
  for (int l = 0; l < 4; l++) {
    if (c + l < p.channels) v[l] = x[at + l * p.pixels] + p.offset & 255;
  }
  y[i] = pack_bytes(v);
#endif
}
