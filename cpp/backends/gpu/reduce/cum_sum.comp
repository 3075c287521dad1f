#version 450
// Running sums of slices [outer, size, inner]: one workgroup per slice, 64 elements at a time, always added in the same
// order. EXCLUSIVE 1: without the element itself. REVERSE 1: from the end. Shared memory: 64 numbers.
// -DINT32: integers, of which those of 64 bits that 32 do not hold are reported.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#ifdef INT32
#define ERROR_RECORD 2
#include "error_record.glsl"
#include "exact.glsl"
#define N int
#else
#define N float
#endif
layout(local_size_x = 64) in;
#ifdef INT32
CUM_SUM_INT32_CONSTANTS
#else
CUM_SUM_CONSTANTS
#endif
layout(set = 0, binding = 0) readonly buffer X { S x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { S y[]; };
layout(push_constant) uniform Params { CUM_SUM_PARAMS } p;
shared N part[64];

#ifndef INT32
float sum(float a, float b) { return a + b; }
#endif

void main() {
  int slice = int(linear_group()), t = int(gl_LocalInvocationID.x);
  bool real = slice < p.slices;
  int base = real ? slice / p.inner * p.size * p.inner + slice % p.inner : 0;
  int size = real ? p.size : 0;
  N carried = N(0);
  for (int first = 0; first < size; first += 64) {
    int i = first + t;
    int at = base + (REVERSE == 1 ? size - 1 - i : i) * p.inner;
    N v = i < size ? N(x[at]) : N(0);
    barrier();  // all have read the last sums
    part[t] = v;
    for (int step = 1; step < 64; step *= 2) {
      barrier();
      N before = t >= step ? part[t - step] : N(0);
      barrier();
      if (t >= step) part[t] = sum(before, part[t]);
    }
    barrier();
    N own = EXCLUSIVE == 1 ? (t > 0 ? part[t - 1] : N(0)) : part[t];
    N made = sum(carried, own);
#ifdef INT32
    if (i < size) y[at] = uint(held(HELD, made));
#else
    if (i < size) y[at] = S(made);
#endif
    carried = sum(carried, part[63]);
  }
#ifdef INT32
  if (HELD == 5 && beyond) report(kBeyond32Bits, 0, 0);
#endif
}
