#version 450
// y = x / (bias + scale * sum of squares of `before` + 1 + `after` channels around x's own)^beta, of rows
// [N, channels, inner]. One output per invocation.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { S x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { S y[]; };
layout(push_constant) uniform Params { LRN_PARAMS } p;

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int c = i / p.inner % p.channels;
  int first = max(c - p.before, 0), last = min(c + p.after, p.channels - 1);
  float squares = 0.0;
  for (int k = first; k <= last; k++) {
    float v = float(x[i + (k - c) * p.inner]);
    squares += v * v;
  }
  float v = float(x[i]), base = p.bias + p.scale * squares;
  // What pow makes of NaN is the device's.
  y[i] = S(p.beta == 0.0 ? v : isnan(base) ? base : v / pow(base, p.beta));
}
