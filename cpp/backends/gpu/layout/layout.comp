#version 450
// Between dense tensors [N, C, pixels] and NC4HW4 buffers [N, ceil(C / 4), pixels] of vec4, and between the host's 32
// bits and the storage type. -DTO_NC4HW4, -DTO_DENSE or neither (same order); -DFROM_F32: the source has 32 bits,
// -DTO_F32: the result. The dense side begins `base` elements after what is bound.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
layout(local_size_x = 64) in;
#ifdef FROM_F32
#define IN float
#define IN4 vec4
#else
#define IN S
#define IN4 S4
#endif
#ifdef TO_F32
#define OUT float
#define OUT4 vec4
#else
#define OUT S
#define OUT4 S4
#endif
layout(push_constant) uniform Params { LAYOUT_PARAMS } p;
#ifdef TO_NC4HW4
layout(set = 0, binding = 0) readonly buffer X { IN x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { OUT4 y[]; };
void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int pixel = i % p.pixels, block = i / p.pixels;
  int image = block / p.blocks, c = block % p.blocks * 4;
  int at = p.base + (image * p.channels + c) * p.pixels + pixel;
  vec4 v = vec4(0.0);
  for (int l = 0; l < 4; l++) {
    if (c + l < p.channels) v[l] = float(x[at + l * p.pixels]);
  }
  y[i] = OUT4(v);
}
#elif defined(TO_DENSE)
layout(set = 0, binding = 0) readonly buffer X { IN4 x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { OUT y[]; };
void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int pixel = i % p.pixels, block = i / p.pixels;
  int image = block / p.blocks, c = block % p.blocks * 4;
  int at = p.base + (image * p.channels + c) * p.pixels + pixel;
  vec4 v = vec4(x[i]);
  for (int l = 0; l < 4; l++) {
    if (c + l < p.channels) y[at + l * p.pixels] = OUT(v[l]);
  }
}
#else
layout(set = 0, binding = 0) readonly buffer X { IN4 x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { OUT4 y[]; };
void main() {
  int i = linear_item();
  if (i < p.count) y[i] = OUT4(vec4(x[i]));
}
#endif
