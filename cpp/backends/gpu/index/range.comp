#version 450
// y[i] = start + i * delta, in 64-bit floats as the reference has it, rounded once. Known: start and delta are the
// numbers of the parameters, else the first elements of A and D.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#include "double.glsl"
layout(local_size_x = 64) in;
RANGE_CONSTANTS
layout(set = 0, binding = 0) readonly buffer A { S start[]; };
layout(set = 0, binding = 1) readonly buffer D { S delta[]; };
layout(set = 0, binding = 2) writeonly buffer Y { S y[]; };
layout(push_constant) uniform Params { RANGE_PARAMS } p;

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  uvec2 a = widened(START_KNOWN == 1 ? uint(p.start) : floatBitsToUint(float(start[0])));
  uvec2 d = widened(DELTA_KNOWN == 1 ? uint(p.delta) : floatBitsToUint(float(delta[0])));
  y[i] = S(uintBitsToFloat(narrowed(add_doubles(a, multiply_doubles(whole_double(uint(i)), d)))));
}
