#version 450
// Resize of NC4HW4 buffers of int8 by tables of taps, as the reference has it in 64-bit floats: along the rows' axis,
// then along the columns', each tap's product and sum rounded. Four channels per invocation.
//   numbers [256] doubles: what a byte stands for; then 255 thresholds of the bytes of y; then one of nothing; then the
//     weights of OH * TAPS_Y and OW * TAPS_X taps
//   places  what each tap takes, in the same order
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "int8.glsl"
#include "double.glsl"
layout(local_size_x = 8, local_size_y = 8) in;
INT8_RESIZE_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) readonly buffer Numbers { uvec2 numbers[]; };
layout(set = 0, binding = 2) readonly buffer Places { int places[]; };
layout(set = 0, binding = 3) writeonly buffer Y { uint y[]; };
layout(push_constant) uniform Params { INT8_RESIZE_PARAMS } p;
const int kThresholds = 256, kWeights = 512;

void main() {
  int ox = int(gl_GlobalInvocationID.x), oy = int(gl_GlobalInvocationID.y), plane = int(gl_WorkGroupID.z);
  if (ox >= p.OW || oy >= p.OH) return;
  int rows = oy * TAPS_Y, columns = p.OH * TAPS_Y + ox * TAPS_X;
  ivec4 made = ivec4(0);
  for (int l = 0; l < 4; l++) {
    uvec2 sum = kZeroDouble;
    for (int tx = 0; tx < TAPS_X; tx++) {
      uvec2 wx = numbers[kWeights + columns + tx];
      if (wx == kZeroDouble) continue;
      int column = plane * p.H * p.W + places[columns + tx];
      uvec2 line = kZeroDouble;
      for (int ty = 0; ty < TAPS_Y; ty++) {
        uvec2 wy = numbers[kWeights + rows + ty];
        if (wy == kZeroDouble) continue;
        uint byte = x[column + places[rows + ty] * p.W] >> (8 * l) & 255u;
        line = add_doubles(line, multiply_doubles(wy, numbers[int(byte)]));
      }
      sum = add_doubles(sum, multiply_doubles(wx, line));
    }
    uvec2 at = order_of(sum);
    int found = 0;
    for (int step = 128; step > 0; step /= 2) {
      if (!less64(at, numbers[kThresholds + found + step - 1])) found += step;
    }
    made[l] = found;
  }
  y[(plane * p.OH + oy) * p.OW + ox] = pack_bytes(made);
}
