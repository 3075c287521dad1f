#version 450
// y = condition ? a : b of dense y; all three broadcast by strides of 0 and may begin at an offset. Up to six
// dimensions. -DINT32: 32 bits of any type.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer C { int condition[]; };
layout(set = 0, binding = 1) readonly buffer A { S a[]; };
layout(set = 0, binding = 2) readonly buffer B { S b[]; };
layout(set = 0, binding = 3) writeonly buffer Y { S y[]; };
layout(push_constant) uniform Params { SELECT_PARAMS } p;

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int k = i, ct = 0, at = p.a, bt = p.b;
  int c = k % p.n4; k /= p.n4; ct += c * p.c5; at += c * p.a5; bt += c * p.b5;
  c = k % p.n3; k /= p.n3; ct += c * p.c4; at += c * p.a4; bt += c * p.b4;
  c = k % p.n2; k /= p.n2; ct += c * p.c3; at += c * p.a3; bt += c * p.b3;
  c = k % p.n1; k /= p.n1; ct += c * p.c2; at += c * p.a2; bt += c * p.b2;
  c = k % p.n0; k /= p.n0; ct += c * p.c1; at += c * p.a1; bt += c * p.b1;
  ct += k * p.c0; at += k * p.a0; bt += k * p.b0;
  if (condition[ct] != 0) {
    y[i] = a[at];
  } else {
    y[i] = b[bt];
  }
}
