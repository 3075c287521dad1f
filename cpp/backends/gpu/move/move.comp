#version 450
// y[sum(index * to)] = x[sum(index * from)] for every index of up to six dimensions: transposes, slices, parts of a
// concatenation, repetitions (strides of 0). -DINT32: 32 bits of any type.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { S x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { S y[]; };
layout(push_constant) uniform Params { MOVE_PARAMS } p;

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int f = p.from, t = p.to;
  int c = i % p.n5; i /= p.n5; f += c * p.f5; t += c * p.t5;
  c = i % p.n4; i /= p.n4; f += c * p.f4; t += c * p.t4;
  c = i % p.n3; i /= p.n3; f += c * p.f3; t += c * p.t3;
  c = i % p.n2; i /= p.n2; f += c * p.f2; t += c * p.t2;
  c = i % p.n1; i /= p.n1; f += c * p.f1; t += c * p.t1;
  y[t + i * p.t0] = x[f + i * p.f0];
}
