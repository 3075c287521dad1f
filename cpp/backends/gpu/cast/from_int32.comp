#version 450
// y = x, floats of integers and bools, rounded once to 32 bits and then to the storage type.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { S y[]; };
layout(push_constant) uniform Params { FROM_INT32_PARAMS } p;

void main() {
  int i = linear_item();
  if (i < p.count) y[i] = S(float(x[i]));
}
