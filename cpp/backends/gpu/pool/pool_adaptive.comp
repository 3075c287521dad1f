#version 450
// Mean or largest of the bins of an NC4HW4 buffer, one vec4 per invocation. Bin o of a side is
// [floor(o * in / out), ceil((o + 1) * in / out)) of it: bins overlap, or repeat, where sizes are no multiples.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
layout(local_size_x = 8, local_size_y = 8) in;
POOL_ADAPTIVE_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { S4 x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { S4 y[]; };
layout(push_constant) uniform Params { POOL_ADAPTIVE_PARAMS } p;

void main() {
  int ox = int(gl_GlobalInvocationID.x), oy = int(gl_GlobalInvocationID.y), plane = int(gl_WorkGroupID.z);
  if (ox >= p.OW || oy >= p.OH) return;
  int first_y = oy * p.H / p.OH, end_y = ((oy + 1) * p.H + p.OH - 1) / p.OH;
  int first_x = ox * p.W / p.OW, end_x = ((ox + 1) * p.W + p.OW - 1) / p.OW;
  vec4 v = vec4(MEAN == 1 ? 0.0 : uintBitsToFloat(0xff800000u));
  for (int iy = first_y; iy < end_y; iy++) {
    vec4 line = vec4(0.0);  // the row's sum: large bins would lose digits in one
    for (int ix = first_x; ix < end_x; ix++) {
      vec4 t = vec4(x[(plane * p.H + iy) * p.W + ix]);
      if (MEAN == 1) {
        line += t;
      } else {
        v = mix(mix(v, t, greaterThan(t, v)), t, isnan(t));
      }
    }
    if (MEAN == 1) v += line;
  }
  if (MEAN == 1) v /= float((end_y - first_y) * (end_x - first_x));
  y[(plane * p.OH + oy) * p.OW + ox] = S4(v);
}
