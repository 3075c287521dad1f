#version 450
// dynamic_quantize_linear in three steps, to the reference's bits: its divisions of 32-bit floats, which devices need
// not round correctly, are made in 64 bits and rounded once more, which gives the same.
//   STAGE 0: parts[group] = the least and the greatest of what the group saw, 0 included, NaN left out
//   STAGE 1: from all parts scale and zero point, also parts[0] = (scale, zero point); one group
//   STAGE 2: y = clamp(round_half_even(x / scale) + zero)
// Shared memory: 128 floats.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#include "double.glsl"
layout(local_size_x = 64) in;
DYNAMIC_QUANTIZE_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { S x[]; };
layout(set = 0, binding = 1) buffer P { vec2 parts[]; };
layout(set = 0, binding = 2) writeonly buffer Y { int y[]; };
layout(set = 0, binding = 3) writeonly buffer Scale { S scale[]; };
layout(set = 0, binding = 4) writeonly buffer Zero { int zero[]; };
layout(push_constant) uniform Params { DYNAMIC_QUANTIZE_PARAMS } p;
shared float low[64];
shared float high[64];
const uint kInfinity = 0x7f800000u;

// Of floats by their bits, which no device changes.
float quotient(uint a, uint b) {
  return uintBitsToFloat(narrowed(divide_doubles(widened(a), widened(b))));
}
bool finite(float v) { return (floatBitsToUint(v) & kInfinity) != kInfinity; }

vec2 scale_and_zero(float least, float most) {
  if (!finite(least) || !finite(most)) return vec2(uintBitsToFloat(kInfinity), 0.0);
  uvec2 width = add_doubles(widened(floatBitsToUint(most)), widened(floatBitsToUint(least) ^ 0x80000000u));
  float s = uintBitsToFloat(narrowed(width));
  if (!finite(s)) return vec2(s, 0.0);
  // First the scale, then by it the zero point: one loop, for a division is long and each of its callers has a copy.
  float zero_point = 0.0;
  for (int k = 0; k < 2; k++) {
    uint by = k == 0 ? floatBitsToUint(255.0) : floatBitsToUint(s);
    float made = quotient(k == 0 ? floatBitsToUint(s) : floatBitsToUint(least) ^ 0x80000000u, by);
    if (k == 1) zero_point = made;
    else s = (floatBitsToUint(made) & 0x7fffffffu) == 0u ? 1.0 : made;
  }
  return vec2(s, roundEven(clamp(zero_point, 0.0, 255.0)));
}

int quantized(float v, float s, int z) {
  if (!finite(s) || isnan(v)) return z;
  if (!finite(v)) return v > 0.0 ? 255 : 0;
  float q = v / s;  // within a few units of its last place
  // Near the middle between two integers it takes the exact one; a subnormal scale may be 0 to a device.
  if (floatBitsToUint(s) < 0x800000u || abs(fract(q) - 0.5) < 0.01) {
    q = quotient(floatBitsToUint(v), floatBitsToUint(s));
  }
  if (abs(q) > 512.0) return q > 0.0 ? 255 : 0;
  return clamp(int(roundEven(q)) + z, 0, 255);
}

void main() {
  int i = linear_item(), t = int(gl_LocalInvocationID.x);
  if (STAGE == 2) {
    if (i < p.count) y[i] = quantized(float(x[i]), parts[0].x, int(parts[0].y));
  } else {
    float least = 0.0, most = 0.0;
    int items = STAGE == 0 ? p.count : p.parts, step = STAGE == 0 ? p.parts * 64 : 64;
    for (int k = STAGE == 0 ? i : t; k < items; k += step) {
      vec2 v = STAGE == 0 ? vec2(float(x[k])) : parts[k];
      if (v.x < least) least = v.x;
      if (v.y > most) most = v.y;
    }
    low[t] = least;
    high[t] = most;
    for (int half_count = 32; half_count > 0; half_count /= 2) {
      barrier();
      if (t < half_count) {
        low[t] = min(low[t], low[t + half_count]);
        high[t] = max(high[t], high[t + half_count]);
      }
    }
    barrier();
    if (t == 0 && STAGE == 0) parts[i / 64] = vec2(low[0], high[0]);
    if (t == 0 && STAGE == 1) {
      vec2 made = scale_and_zero(low[0], high[0]);
      parts[0] = made;
      scale[0] = S(made.x);
      zero[0] = int(made.y);
    }
  }
}
