#version 450
// y = (x - mean[c]) * scale[c] / sqrt(var[c] + epsilon) + b[c] of rows [.., C, inner], with numbers that a run brings.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { S x[]; };
layout(set = 0, binding = 1) readonly buffer Scale { S scale[]; };
layout(set = 0, binding = 2) readonly buffer Bias { S bias[]; };
layout(set = 0, binding = 3) readonly buffer Mean { S mean[]; };
layout(set = 0, binding = 4) readonly buffer Var { S var[]; };
layout(set = 0, binding = 5) writeonly buffer Y { S y[]; };
layout(push_constant) uniform Params { BATCH_NORM_PARAMS } p;

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int c = i / p.inner % p.channels;
  float v = float(var[c]) + p.epsilon;
  float root = v < 0.0 ? uintBitsToFloat(0x7fc00000u) : sqrt(v);
  y[i] = S((float(x[i]) - float(mean[c])) * (float(scale[c]) / root) + float(bias[c]));
}
