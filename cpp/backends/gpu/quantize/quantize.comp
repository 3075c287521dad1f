#version 450
// Floats to quantised integers: the integer is how many of its scale's LEVELS - 1 thresholds the float reaches, so no
// division is rounded here. Floats are compared by their places in order, which are integers: devices may take numbers
// that are not normalised for zeros. FORM 0: dense to dense; of bytes also 1: dense to NC4HW4; 2: NC4HW4 to NC4HW4.
//   thresholds [scales][LEVELS + 1] int32: the places of LEVELS - 1 floats, ascending, the integer of NaN, and -1 where
//     the scale is negative, else 1
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#include "int8.glsl"
layout(local_size_x = 64) in;
QUANTIZE_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { S x[]; };
layout(set = 0, binding = 1) readonly buffer T { int thresholds[]; };
layout(set = 0, binding = 2) writeonly buffer Y { uint y[]; };
// Of dense tensors, element i takes scale i / inner % scales; of NC4HW4, the channel's if there are several.
layout(push_constant) uniform Params { QUANTIZE_PARAMS } p;

int quantized(float v, int scale) {
  int first = scale * (LEVELS + 1);
  int magnitude = floatBitsToInt(v) & 0x7fffffff;
  if (magnitude > 0x7f800000) return thresholds[first + LEVELS - 1];
  int place = (floatBitsToInt(v) < 0 ? -magnitude : magnitude) * thresholds[first + LEVELS];
  int found = 0;
  for (int step = LEVELS / 2; step > 0; step /= 2) {
    if (place >= thresholds[first + found + step - 1]) found += step;
  }
  return found;
}

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  if (FORM == 0) {
    y[i] = uint(quantized(float(x[i]), i / p.inner % p.scales) - p.offset);
    return;
  }
  int pixel = i % p.pixels, block = i / p.pixels;
  int image = block / p.blocks, c = block % p.blocks * 4;
  ivec4 v = ivec4(0);
  for (int l = 0; l < 4; l++) {
    if (c + l >= p.channels) break;
    int at = FORM == 1 ? (image * p.channels + c + l) * p.pixels + pixel : i * 4 + l;
    v[l] = quantized(float(x[at]), p.scales == 1 ? 0 : c + l);
  }
  y[i] = pack_bytes(v);
}
