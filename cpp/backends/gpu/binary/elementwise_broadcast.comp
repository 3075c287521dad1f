#version 450
// y = g(f(a, b)) of dense y and operands that broadcast: strides of 0. One element per invocation, up to six
// dimensions.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#define SCALAR
#include "prelude.glsl"
#include "functions.glsl"
layout(local_size_x = 64) in;
ELEMENTWISE_BROADCAST_CONSTANTS
layout(set = 0, binding = 0) readonly buffer A { S a[]; };
layout(set = 0, binding = 1) readonly buffer C { S b[]; };
layout(set = 0, binding = 2) writeonly buffer Y { S y[]; };
layout(push_constant) uniform Params { ELEMENTWISE_BROADCAST_PARAMS } p;

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int k = i, at = 0, bt = 0;
  int c = k % p.n4; k /= p.n4; at += c * p.a5; bt += c * p.b5;
  c = k % p.n3; k /= p.n3; at += c * p.a4; bt += c * p.b4;
  c = k % p.n2; k /= p.n2; at += c * p.a3; bt += c * p.b3;
  c = k % p.n1; k /= p.n1; at += c * p.a2; bt += c * p.b2;
  c = k % p.n0; k /= p.n0; at += c * p.a1; bt += c * p.b1;
  at += k * p.a0; bt += k * p.b0;
  float v = apply(F, float(a[at]), float(b[bt]), p.p, p.q);
  if (G != FN_none) v = apply(G, v, 0.0, p.r, p.s);
  y[i] = S(v);
}
