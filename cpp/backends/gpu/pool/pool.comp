#version 450
// Largest, mean or norm of windows of an NC4HW4 buffer, one vec4 per invocation. KIND 0 largest, 1 mean, 2 the root of
// the sum of powers.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
layout(local_size_x = 8, local_size_y = 8) in;
POOL_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { S4 x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { S4 y[]; };
// With count_pad windows are divided by their taps inside the padded image (end_y, end_x: where it ends), else by those
// inside the image.
layout(push_constant) uniform Params { POOL_PARAMS } p;

// What pow makes of NaN is the device's.
vec4 powers(vec4 v, float power) {
  return power == 1.0 ? abs(v) : power == 2.0 ? v * v : mix(pow(abs(v), vec4(power)), v, isnan(v));
}

void main() {
  int ox = int(gl_GlobalInvocationID.x), oy = int(gl_GlobalInvocationID.y), plane = int(gl_WorkGroupID.z);
  if (ox >= p.OW || oy >= p.OH) return;
  vec4 v = vec4(KIND == 0 ? uintBitsToFloat(0xff800000u) : 0.0);
  int inside = 0, padded = 0;
  for (int ky = 0; ky < KH; ky++) {
    int iy = oy * p.stride_y - p.pad_y + ky * p.dil_y;
    vec4 line = vec4(0.0);  // the row's sum: long windows would lose digits in one
    for (int kx = 0; kx < KW; kx++) {
      int ix = ox * p.stride_x - p.pad_x + kx * p.dil_x;
      if (iy < p.end_y && ix < p.end_x) padded++;
      if (iy < 0 || iy >= p.H || ix < 0 || ix >= p.W) continue;
      inside++;
      vec4 t = vec4(x[(plane * p.H + iy) * p.W + ix]);
      if (KIND == 1) {
        line += t;
      } else if (KIND == 2) {
        line += powers(t, p.power);
      } else {
        v = mix(mix(v, t, greaterThan(t, v)), t, isnan(t));
      }
    }
    if (KIND != 0) v += line;
  }
  if (KIND == 1) v /= float(p.count_pad == 1 ? padded : inside);
  if (KIND == 2) v = p.power == 2.0 ? sqrt(v) : powers(v, 1.0 / p.power);
  int last = plane % p.blocks == p.blocks - 1 ? p.lanes : 4;
  v = vec4(v.x, last > 1 ? v.y : 0.0, last > 2 ? v.z : 0.0, last > 3 ? v.w : 0.0);
  y[(plane * p.OH + oy) * p.OW + ox] = S4(v);
}
