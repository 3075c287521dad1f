#version 450
// y = value, whose 32 bits are given as a float.
#extension GL_GOOGLE_include_directive : require
#include "prelude.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) writeonly buffer Y { S y[]; };
layout(push_constant) uniform Params { int count; float value; } p;

void main() {
  int i = linear_item();
  if (i < p.count) y[i] = S(p.value);
}
