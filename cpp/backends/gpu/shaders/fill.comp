#version 450
// y = value. -DWORDS: 32 bits of any type.
#extension GL_GOOGLE_include_directive : require
#include "prelude.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) writeonly buffer Y { S y[]; };
#ifdef WORDS
layout(push_constant) uniform Params { int count; uint value; } p;
#else
layout(push_constant) uniform Params { int count; float value; } p;
#endif

void main() {
  int i = linear_item();
  if (i < p.count) y[i] = S(p.value);
}
