#version 450
// Softmax of lanes [outer, size, inner] of quantised rows along size, as the reference has it in 64-bit floats: one
// workgroup per lane, whose sum one invocation makes in the reference's order.
//   numbers [256][256] doubles: exp(x - m) by the bytes of m, the largest, and x; then 255 thresholds of the bytes of y
// Shared memory: 64 integers and a double.
#extension GL_GOOGLE_include_directive : require
#define WORDS
#include "prelude.glsl"
#include "double.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) readonly buffer Numbers { uvec2 numbers[]; };
layout(set = 0, binding = 2) writeonly buffer Y { int y[]; };
layout(push_constant) uniform Params { int lanes; int size; int inner; int offset; } p;
shared int part[64];
shared uvec2 total[1];

void main() {
  int lane = int(linear_group()), t = int(gl_LocalInvocationID.x);
  bool real = lane < p.lanes;
  int base = real ? lane / p.inner * p.size * p.inner + lane % p.inner : 0;
  int size = real ? p.size : 0;
  int largest = 0;
  for (int i = t; i < size; i += 64) largest = max(largest, x[base + i * p.inner] + p.offset);
  part[t] = largest;
  for (int half_count = 32; half_count > 0; half_count /= 2) {
    barrier();
    if (t < half_count) part[t] = max(part[t], part[t + half_count]);
  }
  barrier();
  int first = part[0] * 256 + p.offset;
  if (t == 0) {
    uvec2 sum = kZeroDouble;
    for (int i = 0; i < size; i++) sum = add_doubles(sum, numbers[first + x[base + i * p.inner]]);
    total[0] = sum;
  }
  barrier();
  uvec2 sum = total[0];
  for (int i = t; i < size; i += 64) {
    uvec2 place = order_of(divide_doubles(numbers[first + x[base + i * p.inner]], sum));
    int found = 0;
    for (int step = 128; step > 0; step /= 2) {
      if (!less64(place, numbers[65536 + found + step - 1])) found += step;
    }
    y[base + i * p.inner] = found - p.offset;
  }
}
