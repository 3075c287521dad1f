#version 450
// Lengths of sequences that a run brings, checked: one outside of [0, time] is reported and taken for the nearest
// inside.
//   FORM 0: y[b] = the length of b
//   FORM 1: y[t, b], FORM 2: y[b, t] = which element of the same array stands at t when the first `length` of b are
//   reversed
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#define INT32
#define ERROR_RECORD 2
#include "prelude.glsl"
#include "error_record.glsl"
layout(local_size_x = 64) in;
LENGTHS_CONSTANTS
layout(set = 0, binding = 0) readonly buffer L { int lengths[]; };
layout(set = 0, binding = 1) writeonly buffer Y { int y[]; };
layout(push_constant) uniform Params { LENGTHS_PARAMS } p;

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int b = FORM == 0 ? i : FORM == 1 ? i % p.batch : i / p.time;
  int t = FORM == 1 ? i / p.batch : i % p.time;
  int given = lengths[b], length = clamp(given, 0, p.time);
  if (given != length) report(kLengthOutside, given, p.time);
  int from = t < length ? length - 1 - t : t;
  y[i] = FORM == 0 ? length : FORM == 1 ? from * p.batch + b : b * p.time + from;
}
