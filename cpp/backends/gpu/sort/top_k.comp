#version 450
// The k first elements of each slice [outer, size, inner] in the order of their values, and their places; one workgroup
// per slice, which finds one after the other: deterministic, whatever the order of invocations. Of equal elements the
// lower place comes first, with LAST 1 the higher. SMALLEST 1: ascending. NaN is above all numbers; with NAN_FIRST 1 it
// comes first also where the smallest is looked for. VALUES 0: places only. A dispatch finds those from p.first on below
// p.last, after what the dispatches before it have found. Shared memory: 128 integers.
// -DINT32: integers.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#ifdef INT32
#define N int
#else
#define N float
#endif
layout(local_size_x = 64) in;
#ifndef INT32
TOP_K_CONSTANTS
#else
TOP_K_INT32_CONSTANTS
#endif
layout(set = 0, binding = 0) readonly buffer X { S x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { S y[]; };
layout(set = 0, binding = 2) buffer I { int places[]; };
layout(push_constant) uniform Params { TOP_K_PARAMS } p;
shared int keys[64];
shared int found[64];

// An integer that is larger for what comes earlier.
#ifdef INT32
int key_of(int v) {
  int k = v;
#else
int key_of(float v) {
  int bits = floatBitsToInt(v);
  if ((bits & 0x7fffffff) > 0x7f800000) return SMALLEST == 1 && NAN_FIRST == 0 ? int(0x80000000u) : 0x7fffffff;
  if ((bits & 0x7fffffff) == 0) bits = 0;  // -0 is 0
  int k = bits < 0 ? bits ^ 0x7fffffff : bits;
#endif
  return SMALLEST == 1 ? ~k : k;
}
// Whether key a at place i comes before key b at place j; a place below 0 is none.
bool before(int a, int i, int b, int j) {
  if (i < 0 || j < 0) return j < 0 && i >= 0;
  return a > b || (a == b && (LAST == 1 ? i > j : i < j));
}

void main() {
  int slice = int(linear_group()), t = int(gl_LocalInvocationID.x);
  bool real = slice < p.slices;
  int outer = slice / p.inner, inner = slice % p.inner;
  int base = real ? outer * p.size * p.inner + inner : 0;
  int size = real ? p.size : 0;
  int last_key = 0, last = -1;
  if (p.first > 0 && real) {
    last = places[(outer * p.k + p.first - 1) * p.inner + inner];
    last_key = key_of(N(x[base + last * p.inner]));
  }
  for (int n = p.first; n < p.last; n++) {
    int key = 0, at = -1;
    for (int i = t; i < size; i += 64) {
      int own = key_of(N(x[base + i * p.inner]));
      if ((n == 0 || before(last_key, last, own, i)) && before(own, i, key, at)) {
        key = own;
        at = i;
      }
    }
    barrier();  // all have read the last one
    keys[t] = key;
    found[t] = at;
    for (int half_count = 32; half_count > 0; half_count /= 2) {
      barrier();
      if (t < half_count && before(keys[t + half_count], found[t + half_count], keys[t], found[t])) {
        keys[t] = keys[t + half_count];
        found[t] = found[t + half_count];
      }
    }
    barrier();
    last_key = keys[0];
    last = found[0];
    if (t == 0 && real) {
      int to = (outer * p.k + n) * p.inner + inner;
      places[to] = last;
      if (VALUES == 1) y[to] = x[base + last * p.inner];
    }
  }
}
