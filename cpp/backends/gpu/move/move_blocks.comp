#version 450
// Runs of vec4 of NC4HW4 buffers: y[image * to_image + to + i] = x[image * from_image + from + i], i below run.
// Concatenation and slices of whole blocks of channels.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { S4 x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { S4 y[]; };
layout(push_constant) uniform Params { MOVE_BLOCKS_PARAMS } p;

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int image = i / p.run, k = i % p.run;
  y[image * p.to_image + p.to + k] = x[image * p.from_image + p.from + k];
}
