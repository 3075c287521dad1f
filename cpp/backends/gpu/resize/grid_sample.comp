#version 450
// An NC4HW4 buffer of images [N, C, H, W] sampled at places (x, y) of a dense tensor [N, places, 2], where -1 and 1 are
// the outer edges of the first and last pixel (ALIGN 1: their centres); one vec4 per invocation. TAPS of a direction:
// 1 nearest, 2 linear, 4 cubic. Places and weights as ops/grid_sample_taps.h has them, in float32.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
layout(local_size_x = 64) in;
GRID_SAMPLE_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { S4 x[]; };
layout(set = 0, binding = 1) readonly buffer Grid { S grid[]; };
layout(set = 0, binding = 2) writeonly buffer Y { S4 y[]; };
layout(push_constant) uniform Params { GRID_SAMPLE_PARAMS } p;
const int kZeros = 0, kBorder = 1, kReflection = 2;

// Pixels along one direction that make up a sample, and their weights.
struct Taps {
  ivec4 index;
  vec4 weight;
};

// `at` mirrored at low and high as often as it takes.
float mirrored(float at, float low, float high) {
  float span = high - low;
  if (!(span > 0.0)) return low;
  float distance = abs(at - low), times = floor(distance / span), rest = distance - times * span;
  return times - 2.0 * floor(times / 2.0) == 0.0 ? low + rest : high - rest;
}

// a = -0.75
float cubic_inner(float d) { return (1.25 * d - 2.25) * d * d + 1.0; }
float cubic_outer(float d) { return ((-0.75 * d + 3.75) * d - 6.0) * d + 3.0; }

Taps taps_of(float place, int size) {
  float n = float(size);
  float at = ALIGN == 1 ? (place + 1.0) / 2.0 * (n - 1.0) : ((place + 1.0) * n - 1.0) / 2.0;
  if (TAPS == 1) at = roundEven(at);
  float low = ALIGN == 1 ? 0.0 : -0.5, high = ALIGN == 1 ? n - 1.0 : n - 0.5;
  if (PADDING != kZeros) {
    float margin = TAPS == 4 ? 2.0 : 0.0;
    if (at < low || at > high) {
      at = PADDING == kBorder ? clamp(at, -margin, n - 1.0 + margin) : mirrored(at, low, high);
    }
    if (isnan(at)) at = 0.0;
  }
  Taps taps = Taps(ivec4(0), vec4(0.0));
  if (!(at > -4.0 && at < n + 4.0)) return taps;  // far outside, or NaN: only zeros
  float first = TAPS == 1 ? roundEven(at) : floor(at), t = at - first;
  if (TAPS == 1) taps.weight.x = 1.0;
  if (TAPS == 2) taps.weight.xy = vec2(1.0 - t, t);
  if (TAPS == 4) taps.weight = vec4(cubic_outer(t + 1.0), cubic_inner(t), cubic_inner(1.0 - t), cubic_outer(2.0 - t));
  for (int k = 0; k < TAPS; k++) {
    int i = int(first) + k - (TAPS == 4 ? 1 : 0);
    int inside = clamp(i, 0, size - 1);
    if (i != inside && PADDING == kZeros) taps.weight[k] = 0.0;
    if (i != inside && PADDING == kReflection) inside = clamp(int(mirrored(float(i), low, high)), 0, size - 1);
    taps.index[k] = inside;
  }
  return taps;
}

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int plane = i / p.places, place = plane / p.blocks * p.places + i % p.places;
  Taps across = taps_of(float(grid[2 * place]), p.W), down = taps_of(float(grid[2 * place + 1]), p.H);
  vec4 sum = vec4(0.0);
  for (int r = 0; r < TAPS; r++) {
    int row = (plane * p.H + down.index[r]) * p.W;
    for (int c = 0; c < TAPS; c++) {
      float w = down.weight[r] * across.weight[c];
      if (w != 0.0) sum += w * vec4(x[row + across.index[c]]);
    }
  }
  y[i] = S4(sum);
}
