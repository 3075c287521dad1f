#version 450
// Mean or largest of every plane of an NC4HW4 buffer: one workgroup per block of channels, pixels shared among its
// invocations, then a tree. Shared memory: 64 vec4.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#define SUMMAND vec4
#include "sum.glsl"
layout(local_size_x = 64) in;
POOL_GLOBAL_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { S4 x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { S4 y[]; };
layout(push_constant) uniform Params { POOL_GLOBAL_PARAMS } p;
shared vec4 part[64];

vec4 both(vec4 a, vec4 b) {
  return MEAN == 1 ? a + b : mix(mix(a, b, greaterThan(b, a)), b, isnan(b));
}

void main() {
  int plane = int(linear_group()), t = int(gl_LocalInvocationID.x);
  vec4 v = vec4(uintBitsToFloat(0xff800000u));
  Sum sum = no_sum();
  if (plane < p.planes) {
    for (int i = t; i < p.pixels; i += 64) {
      vec4 e = vec4(x[plane * p.pixels + i]);
      if (MEAN == 1) {
        add(sum, e);
      } else {
        v = both(v, e);
      }
    }
  }
  part[t] = MEAN == 1 ? result_of(sum) : v;
  for (int half_count = 32; half_count > 0; half_count /= 2) {
    barrier();
    if (t < half_count) part[t] = both(part[t], part[t + half_count]);
  }
  if (t == 0 && plane < p.planes) y[plane] = S4(MEAN == 1 ? part[0] / float(p.pixels) : part[0]);
}
