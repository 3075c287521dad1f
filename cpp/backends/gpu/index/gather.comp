#version 450
// y[outer, j, inner] = x[outer, index[j], inner]; negative indices count from the end. The caller
// checks them. -DINT32: 32 bits of any type. Of the dimension's `size` places x has `held` from `first` on; what others
// have is left as it is.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { S x[]; };
layout(set = 0, binding = 1) readonly buffer I { int index[]; };
layout(set = 0, binding = 2) writeonly buffer Y { S y[]; };
layout(push_constant) uniform Params { GATHER_PARAMS } p;

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int k = i % p.inner, j = i / p.inner % p.indices, o = i / p.inner / p.indices;
  int at = index[j];
  if (at < 0) at += p.size;
  // The caller has checked the indices; the clamp keeps a kernel inside the tensor whatever they are.
  at = clamp(at, 0, p.size - 1) - p.first;
  if (at >= 0 && at < p.held) y[i] = x[(o * p.held + at) * p.inner + k];
}
