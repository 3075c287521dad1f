#version 450
// y[outer, j, inner] = x[outer, index[j], inner]; negative indices count from the end. What is outside gives 0 here: the
// caller checks indices that are constants. -DWORDS: 32 bits of any type.
#extension GL_GOOGLE_include_directive : require
#include "prelude.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { S x[]; };
layout(set = 0, binding = 1) readonly buffer I { int index[]; };
layout(set = 0, binding = 2) writeonly buffer Y { S y[]; };
layout(push_constant) uniform Params { int count; int indices; int inner; int size; } p;

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int k = i % p.inner, j = i / p.inner % p.indices, o = i / p.inner / p.indices;
  int at = index[j];
  if (at < 0) at += p.size;
  y[i] = at >= 0 && at < p.size ? x[(o * p.size + at) * p.inner + k] : S(0);
}
