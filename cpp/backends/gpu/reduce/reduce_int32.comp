#version 450
// One integer of every row of integers, which may lie in up to three strided dimensions; one workgroup per row. KIND as
// in reduce.comp, of which there are 0 sum, 2 max, 3 min, 4 product, 5 sum of magnitudes, 6 sum of squares. Results
// keep the low bits of their type; where 64 bits are to be held, a step on the way that 32 do not hold is reported.
// Shared memory: 64 integers.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#define INT32
#define ERROR_RECORD 2
#include "prelude.glsl"
#include "error_record.glsl"
#include "exact.glsl"
layout(local_size_x = 64) in;
REDUCE_INT32_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { int y[]; };
// Rows are numbered over k0 x k1 x k2 with strides a0 a1 a2, their elements over r0 x r1 x r2 with strides b0 b1 b2.
layout(push_constant) uniform Params { REDUCE_PARAMS } p;
shared int part[64];
const int kLeast = int(0x80000000u);
int both(int a, int b) {
  switch (KIND) {
    case 2: return max(a, b);
    case 3: return min(a, b);
    case 4: return product(a, b);
  }
  return sum(a, b);
}
int place(int base, int i) {
  int c2 = i % p.r2;
  i /= p.r2;
  return base + c2 * p.b2 + i % p.r1 * p.b1 + i / p.r1 * p.b0;
}

void main() {
  int row = int(linear_group()), t = int(gl_LocalInvocationID.x);
  int size = row < p.rows ? p.size : 0;
  int r = row;
  int c2 = r % p.k2;
  r /= p.k2;
  int base = c2 * p.a2 + r % p.k1 * p.a1 + r / p.k1 * p.a0;
  int v = KIND == 2 ? kLeast : KIND == 3 ? 0x7fffffff : KIND == 4 ? 1 : 0;
  for (int i = t; i < size; i += 64) {
    int e = x[place(base, i)];
    if (KIND == 5 && e < 0) e = difference(0, e);
    if (KIND == 6) e = product(e, e);
    v = both(v, e);
  }
  part[t] = v;
  for (int half_count = 32; half_count > 0; half_count /= 2) {
    barrier();
    if (t < half_count) part[t] = both(part[t], part[t + half_count]);
  }
  if (HELD == 5 && beyond) report(kBeyond32Bits, 0, 0);
  if (t == 0 && row < p.rows) y[row] = held(HELD, part[0]);
}
