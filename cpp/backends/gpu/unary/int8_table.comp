#version 450
// y[run's place in y] = table[x[run's place in x]] of quantised bytes: functions of one operand, changes of scale, and
// with TABLE 0 copies of whole blocks of channels. ROWS 1: dense, an int32 per element; else NC4HW4, four bytes in 32
// bits.
//   table [256] bytes, by unsigned bytes; offsets are what is added to an element to make it unsigned
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#define INT32
#include "prelude.glsl"
#include "int8.glsl"
layout(local_size_x = 64) in;
INT8_TABLE_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) readonly buffer T { uint table[]; };
layout(set = 0, binding = 2) writeonly buffer Y { uint y[]; };
layout(push_constant) uniform Params { INT8_TABLE_PARAMS } p;

int look_up(int v) { return int(table[v >> 2] >> (8 * (v & 3)) & 255u); }

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int image = i / p.run, k = i % p.run;
  uint v = x[image * p.from_image + p.from + k];
  if (TABLE == 1 && ROWS == 1) {
    v = uint(look_up(int(v) + p.offset & 255) - p.offset);
  } else if (TABLE == 1) {
    ivec4 four = unpack_bytes(v);
    v = pack_bytes(ivec4(look_up(four.x), look_up(four.y), look_up(four.z), look_up(four.w)));
  }
  y[image * p.to_image + p.to + k] = v;
}
