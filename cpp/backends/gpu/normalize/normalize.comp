#version 450
// y = (x - mean) / sqrt(var + epsilon) * scale + bias of rows of `size` elements; one workgroup per row.
// RMS 1: mean is 0. SCALE, BIAS 1: scale[j], bias[j] with j = (row % period * size + i) / inner % channels.
// Two passes over the row: the mean, then the deviations d from it, whose own mean is what rounding has made of the
// first one: with it var = mean of d^2 - (mean of d)^2 is right also where the mean is large beside the deviations.
// Shared memory: 64 floats.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#include "sum.glsl"
layout(local_size_x = 64) in;
NORMALIZE_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { S x[]; };
layout(set = 0, binding = 1) readonly buffer W { S scale[]; };
layout(set = 0, binding = 2) readonly buffer B { S bias[]; };
layout(set = 0, binding = 3) writeonly buffer Y { S y[]; };
layout(push_constant) uniform Params { NORMALIZE_PARAMS } p;
shared float part[64];

float total(float v) {
  int t = int(gl_LocalInvocationID.x);
  barrier();
  part[t] = v;
  for (int half_count = 32; half_count > 0; half_count /= 2) {
    barrier();
    if (t < half_count) part[t] += part[t + half_count];
  }
  barrier();
  return part[0];
}

void main() {
  int row = int(linear_group()), t = int(gl_LocalInvocationID.x);
  int size = row < p.rows ? p.size : 0, base = row * p.size;
  Sum sum = no_sum(), squares = no_sum();
  if (RMS == 0) {
    for (int i = t; i < size; i += 64) add(sum, float(x[base + i]));
  }
  float mean = total(result_of(sum)) / float(p.size);
  sum = no_sum();
  for (int i = t; i < size; i += 64) {
    float d = float(x[base + i]) - mean;
    if (RMS == 0) add(sum, d);
    add(squares, d * d);
  }
  float rest = total(result_of(sum)) / float(p.size);
  float variance = total(result_of(squares)) / float(p.size) - rest * rest;
  if (variance < 0.0) variance = 0.0;  // max() may lose NaN
  float k = 1.0 / sqrt(variance + p.epsilon);
  for (int i = t; i < size; i += 64) {
    float v = ((float(x[base + i]) - mean) - rest) * k;
    int j = (row % p.period * p.size + i) / p.inner % p.channels;
    if (SCALE == 1) v *= float(scale[j]);
    if (BIAS == 1) v += float(bias[j]);
    y[base + i] = S(v);
  }
}
