#version 450
// Quantised integers to floats: float32(x - zero) * scale. FORM 0: dense to dense; 2: NC4HW4 to NC4HW4.
//   scales [scales][2]: scale, zero point (of NC4HW4: of unsigned bytes)
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#include "int8.glsl"
layout(local_size_x = 64) in;
DEQUANTIZE_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) readonly buffer T { float scales[]; };
layout(set = 0, binding = 2) writeonly buffer Y { S y[]; };
// Scales as in quantize.comp.
layout(push_constant) uniform Params { DEQUANTIZE_PARAMS } p;

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  if (FORM == 0) {
    int k = i / p.inner % p.scales * 2;
    y[i] = S(float(int(x[i]) - int(scales[k + 1])) * scales[k]);
    return;
  }
  ivec4 v = unpack_bytes(x[i]);
  int c = i / p.pixels % p.blocks * 4;
  for (int l = 0; l < 4; l++) {
    int k = p.scales == 1 ? 0 : min(c + l, p.scales - 1) * 2;
    y[i * 4 + l] = S(float(v[l] - int(scales[k + 1])) * scales[k]);
  }
}
