#version 450
// Between dense int32 [N, C, pixels] and NC4HW4 buffers [N, ceil(C / 4), pixels] of four bytes in 32 bits.
// -DTO_DENSE: the other way. `offset`: what is added to an element in NC4HW4. The dense side
// begin `base` elements after what is bound.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#define INT32
#include "prelude.glsl"
#include "int8.glsl"
layout(local_size_x = 64) in;
#ifdef TO_DENSE
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { int y[]; };
#else
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { uint y[]; };
#endif
layout(push_constant) uniform Params { INT8_LAYOUT_PARAMS } p;

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int pixel = i % p.pixels, block = i / p.pixels;
  int image = block / p.blocks, c = block % p.blocks * 4;
  int at = p.base + (image * p.channels + c) * p.pixels + pixel;
#ifdef TO_DENSE
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
