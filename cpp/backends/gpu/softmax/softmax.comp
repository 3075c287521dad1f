#version 450
// Softmax, or its logarithm (LOG 1), of slices [outer, size, inner] along size: one workgroup per slice.
// Shared memory: 64 floats.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#include "sum.glsl"
layout(local_size_x = 64) in;
SOFTMAX_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { S x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { S y[]; };
layout(push_constant) uniform Params { SOFTMAX_PARAMS } p;
shared float part[64];

// The result of the tree over all invocations; MAX: the largest, NaN if there is one, else the sum.
float across(float v, bool largest) {
  int t = int(gl_LocalInvocationID.x);
  barrier();  // all have read the last result
  part[t] = v;
  for (int half_count = 32; half_count > 0; half_count /= 2) {
    barrier();
    if (t < half_count) {
      float a = part[t], b = part[t + half_count];
      part[t] = largest ? (isnan(a) || a > b ? a : b) : a + b;
    }
  }
  barrier();
  return part[0];
}

void main() {
  int slice = int(linear_group()), t = int(gl_LocalInvocationID.x);
  bool real = slice < p.slices;
  int base = real ? slice / p.inner * p.size * p.inner + slice % p.inner : 0;
  int size = real ? p.size : 0;
  float m = uintBitsToFloat(0xff800000u);
  for (int i = t; i < size; i += 64) {
    float v = float(x[base + i * p.inner]);
    m = isnan(m) || m > v ? m : v;
  }
  m = across(m, true);
  Sum sum = no_sum();
  for (int i = t; i < size; i += 64) add(sum, exp(float(x[base + i * p.inner]) - m));
  float s = across(result_of(sum), false), logarithm = log(s);
  for (int i = t; i < size; i += 64) {
    float v = float(x[base + i * p.inner]);
    // m + log(s) would lose the logarithm's digits where m is large.
    y[base + i * p.inner] = S(LOG == 1 ? (v - m) - logarithm : exp(v - m) / s);
  }
}
