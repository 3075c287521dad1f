#version 450
// One number of every row of elements, which may lie in up to three strided dimensions; one workgroup per row.
// KIND 0 sum, 1 mean, 2 max, 3 min, 4 product, 5 sum of magnitudes, 6 sum of squares, 7 root of 6, 8 log of 0,
// 9 log of the sum of exponentials. Shared memory: 64 floats.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#include "sum.glsl"
layout(local_size_x = 64) in;
REDUCE_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { S x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { S y[]; };
// Rows are numbered over k0 x k1 x k2 with strides a0 a1 a2, their elements over r0 x r1 x r2 with strides b0 b1 b2.
layout(push_constant) uniform Params { REDUCE_PARAMS } p;
shared float part[64];

float both(float a, float b) {
  switch (KIND) {
    case 2: return isnan(a) || a > b ? a : b;
    case 3: return isnan(a) || a < b ? a : b;
    case 4: return a * b;
  }
  return a + b;
}
float across(float v, bool largest) {
  int t = int(gl_LocalInvocationID.x);
  barrier();
  part[t] = v;
  for (int half_count = 32; half_count > 0; half_count /= 2) {
    barrier();
    if (t < half_count) {
      float a = part[t], b = part[t + half_count];
      part[t] = largest ? (isnan(a) || a > b ? a : b) : both(a, b);
    }
  }
  barrier();
  return part[0];
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
  float infinity = uintBitsToFloat(0x7f800000u);
  float m = 0.0;
  if (KIND == 9) {
    m = -infinity;
    for (int i = t; i < size; i += 64) {
      float v = float(x[place(base, i)]);
      m = isnan(m) || m > v ? m : v;
    }
    m = across(m, true);
    if (isinf(m)) m = 0.0;  // infinity - infinity would be NaN
  }
  float v = KIND == 2 ? -infinity : KIND == 3 ? infinity : 1.0;
  Sum sum = no_sum();
  for (int i = t; i < size; i += 64) {
    float e = float(x[place(base, i)]);
    if (KIND == 5) e = abs(e);
    if (KIND == 6 || KIND == 7) e *= e;
    if (KIND == 9) e = exp(e - m);
    if (KIND >= 2 && KIND <= 4) {
      v = both(v, e);
    } else {
      add(sum, e);
    }
  }
  v = across(KIND >= 2 && KIND <= 4 ? v : result_of(sum), false);
  if (t == 0 && row < p.rows) {
    if (KIND == 1) v /= float(p.size);
    if (KIND == 7) v = sqrt(v);
    if (KIND == 8) v = log(v);
    if (KIND == 9) v = log(v) + m;
    y[row] = S(v);
  }
}
