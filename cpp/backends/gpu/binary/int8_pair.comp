#version 450
// y = table[a][b] of quantised bytes: functions of two operands, each result as the reference made it for that pair.
// Images: b in a's place, or with CHANNEL 1 one pixel for the plane. -DDENSE: an int32 per element, up to six
// dimensions, operands that broadcast by strides of 0.
//   table [256][256] bytes, by unsigned bytes
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#define INT32
#include "prelude.glsl"
#include "int8.glsl"
layout(local_size_x = 64) in;
#ifdef DENSE
layout(set = 0, binding = 0) readonly buffer A { int a[]; };
layout(set = 0, binding = 1) readonly buffer C { int b[]; };
layout(set = 0, binding = 3) writeonly buffer Y { int y[]; };
layout(push_constant) uniform Params { INT8_PAIR_DENSE_PARAMS } p;
#else
INT8_PAIR_CONSTANTS
layout(set = 0, binding = 0) readonly buffer A { uint a[]; };
layout(set = 0, binding = 1) readonly buffer C { uint b[]; };
layout(set = 0, binding = 3) writeonly buffer Y { uint y[]; };
// b has `b_images` images, 1 or as many as a.
layout(push_constant) uniform Params { INT8_PAIR_PARAMS } p;
#endif
layout(set = 0, binding = 2) readonly buffer T { uint table[]; };

int look_up(int v, int u) {
  int at = v * 256 + u;
  return int(table[at >> 2] >> (8 * (at & 3)) & 255u);
}

void main() {
  int i = linear_item();
  if (i >= p.count) return;
#ifdef DENSE
  int k = i, at = 0, bt = 0;
  int c = k % p.n4; k /= p.n4; at += c * p.a5; bt += c * p.b5;
  c = k % p.n3; k /= p.n3; at += c * p.a4; bt += c * p.b4;
  c = k % p.n2; k /= p.n2; at += c * p.a3; bt += c * p.b3;
  c = k % p.n1; k /= p.n1; at += c * p.a2; bt += c * p.b2;
  c = k % p.n0; k /= p.n0; at += c * p.a1; bt += c * p.b1;
  at += k * p.a0; bt += k * p.b0;
  y[i] = look_up(a[at] + p.offset & 255, b[bt] + p.offset & 255) - p.offset;
#else
  int other = i;
  if (CHANNEL == 1) {
    other = i / p.pixels;
    if (p.b_images == 1) other %= p.blocks;
  }
  ivec4 v = unpack_bytes(a[i]), u = unpack_bytes(b[other]);
  y[i] = pack_bytes(ivec4(look_up(v.x, u.x), look_up(v.y, u.y), look_up(v.z, u.z), look_up(v.w, u.w)));
#endif
}
