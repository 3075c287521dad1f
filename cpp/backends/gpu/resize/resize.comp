#version 450
// Resize of NC4HW4 buffers by tables of taps: y = sum over ty, tx of wy * wx * x[iy, ix]. Table entries are (index,
// weight as bits), `taps` per place of the output, first those of the rows, then those of the columns. An index of -1:
// the place is outside of x and takes a value of its own.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
layout(local_size_x = 8, local_size_y = 8) in;
RESIZE_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { S4 x[]; };
layout(set = 0, binding = 1) readonly buffer Table { int table[]; };
layout(set = 0, binding = 2) writeonly buffer Y { S4 y[]; };
layout(push_constant) uniform Params { RESIZE_PARAMS } p;

void main() {
  int ox = int(gl_GlobalInvocationID.x), oy = int(gl_GlobalInvocationID.y), plane = int(gl_WorkGroupID.z);
  if (ox >= p.OW || oy >= p.OH) return;
  vec4 sum = vec4(0.0);
  int columns = p.OH * TAPS_Y * 2;
  if (table[oy * TAPS_Y * 2] < 0 || table[columns + ox * TAPS_X * 2] < 0) {
    y[(plane * p.OH + oy) * p.OW + ox] = S4(vec4(p.outside));
    return;
  }
  for (int ty = 0; ty < TAPS_Y; ty++) {
    int at = (oy * TAPS_Y + ty) * 2;
    int row = (plane * p.H + table[at]) * p.W;
    float wy = intBitsToFloat(table[at + 1]);
    vec4 line = vec4(0.0);
    for (int tx = 0; tx < TAPS_X; tx++) {
      int bt = columns + (ox * TAPS_X + tx) * 2;
      vec4 v = vec4(x[row + table[bt]]);
      float w = intBitsToFloat(table[bt + 1]);
      if (w != 0.0) line += w * v;
    }
    if (wy != 0.0) sum += wy * line;
  }
  y[(plane * p.OH + oy) * p.OW + ox] = S4(sum);
}
