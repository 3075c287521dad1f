#version 450
// Flat places of index tuples that are known in a run only: y[t] = sum of coordinate(t) * base + sum over j below tuple
// of index[t * tuple + j] * step(j), each index counted from the end where it is negative. An index outside of its
// dimension is reported, and taken for the nearest inside.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#define INT32
#define ERROR_RECORD 2
#include "prelude.glsl"
#include "error_record.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer I { int index[]; };
layout(set = 0, binding = 1) writeonly buffer Y { int y[]; };
layout(push_constant) uniform Params { PLACE_PARAMS } p;

int wrapped(int v, int size) {
  if (v < -size || v >= size) report(kIndexOutside, v, size);
  return clamp(v < 0 ? v + size : v, 0, size - 1);
}

void main() {
  int t = linear_item();
  if (t >= p.count) return;
  int k = t, at = 0;
  at += k % p.n4 * p.b5; k /= p.n4;
  at += k % p.n3 * p.b4; k /= p.n3;
  at += k % p.n2 * p.b3; k /= p.n2;
  at += k % p.n1 * p.b2; k /= p.n1;
  at += k % p.n0 * p.b1; k /= p.n0;
  at += k * p.b0;
  int i = t * p.tuple;
  at += wrapped(index[i], p.s0) * p.d0;
  if (p.tuple > 1) at += wrapped(index[i + 1], p.s1) * p.d1;
  if (p.tuple > 2) at += wrapped(index[i + 2], p.s2) * p.d2;
  if (p.tuple > 3) at += wrapped(index[i + 3], p.s3) * p.d3;
  if (p.tuple > 4) at += wrapped(index[i + 4], p.s4) * p.d4;
  if (p.tuple > 5) at += wrapped(index[i + 5], p.s5) * p.d5;
  y[t] = at;
}
