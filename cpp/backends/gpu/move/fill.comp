#version 450
// y = value. -DINT32: 32 bits of any type.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) writeonly buffer Y { S y[]; };
#ifdef INT32
layout(push_constant) uniform Params { FILL_INT32_PARAMS } p;
#else
layout(push_constant) uniform Params { FILL_PARAMS } p;
#endif

void main() {
  int i = linear_item();
  if (i < p.count) y[i] = S(p.value);
}
