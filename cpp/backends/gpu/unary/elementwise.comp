#version 450
// Up to four functions in a row on every element of dense tensors, or of NC4HW4 buffers, four at a time.
//   y[i] = f3(f2(f1(f0(x[i], b0), b1), b2), b3); each b is a number, the element of a tensor of the same layout, or the
//   channel's element of an NC4HW4 buffer of one pixel. Lanes that are no channel become 0.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#include "functions.glsl"
layout(local_size_x = 64) in;
ELEMENTWISE_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { S4 x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { S4 y[]; };
layout(set = 0, binding = 2) readonly buffer B0 { S4 b0[]; };
layout(set = 0, binding = 3) readonly buffer B1 { S4 b1[]; };
layout(set = 0, binding = 4) readonly buffer B2 { S4 b2[]; };
layout(set = 0, binding = 5) readonly buffer B3 { S4 b3[]; };
// count and pixels in vec4; channels is a multiple of 4 lanes and blocks those of an image; a channel operand has
// `operand_images` images, 1 or as many as x.
layout(push_constant) uniform Params { ELEMENTWISE_PARAMS } p;

vec4 operand(int stage, int mode, int i) {
  int at = i;
  if (mode == 2) {
    at = i / p.pixels;
    if (p.operand_images == 1) at %= p.blocks;
  }
  if (mode == 3) at = 0;
  vec4 v = stage == 0 ? vec4(b0[at]) : stage == 1 ? vec4(b1[at]) : stage == 2 ? vec4(b2[at]) : vec4(b3[at]);
  return mode == 3 ? vec4(v.x) : v;
}

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  vec4 v = vec4(x[i]);
  for (int stage = 0; stage < STAGES; stage++) {
    int code = stage == 0 ? F0 : stage == 1 ? F1 : stage == 2 ? F2 : F3;
    int mode = stage == 0 ? M0 : stage == 1 ? M1 : stage == 2 ? M2 : M3;
    float a = stage == 0 ? p.p0 : stage == 1 ? p.p1 : stage == 2 ? p.p2 : p.p3;
    float b = stage == 0 ? p.q0 : stage == 1 ? p.q1 : stage == 2 ? p.q2 : p.q3;
    vec4 other = mode == 0 ? vec4(a) : operand(stage, mode, i);
    v = apply(code, v, other, a, b);
  }
  if (MASK == 1) {
    int last = (i / p.pixels) % p.blocks == p.blocks - 1 ? p.lanes : 4;
    v = vec4(v.x, last > 1 ? v.y : 0.0, last > 2 ? v.z : 0.0, last > 3 ? v.w : 0.0);
  }
  y[i] = S4(v);
}
