#version 450
// Runs of vec4 of images: y[image * to_image + to + i] = x[image * from_image + from + i], i below run. Concatenation and
// slices of whole blocks of channels.
#extension GL_GOOGLE_include_directive : require
#include "prelude.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { S4 x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { S4 y[]; };
layout(push_constant) uniform Params { int count; int run; int from_image; int from; int to_image; int to; } p;

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int image = i / p.run, k = i % p.run;
  y[image * p.to_image + p.to + k] = x[image * p.from_image + p.from + k];
}
