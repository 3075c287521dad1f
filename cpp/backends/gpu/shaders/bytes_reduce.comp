#version 450
// Sums of rows of quantised integers as the reference has them in 64-bit floats, which hold sums of a million of its
// numbers exactly: any order gives its bits. Which byte a sum, a mean or another function that rises with the sum
// becomes, thresholds say. One workgroup per row; rows may lie in up to three strided dimensions.
//   numbers [256] doubles: what a byte adds; then 255 thresholds of the bytes of y
// Shared memory: 64 doubles.
#extension GL_GOOGLE_include_directive : require
#define WORDS
#include "prelude.glsl"
#include "double.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { int y[]; };
layout(set = 0, binding = 2) readonly buffer Numbers { uvec2 numbers[]; };
// As in reduce_words.comp.
layout(push_constant) uniform Params {
  int rows; int size; int k1; int k2; int a0; int a1; int a2; int r1; int r2; int b0; int b1; int b2; int offset;
} p;
shared uvec2 part[64];

int place(int base, int i) {
  int c2 = i % p.r2;
  i /= p.r2;
  return base + c2 * p.b2 + i % p.r1 * p.b1 + i / p.r1 * p.b0;
}

void main() {
  int row = int(linear_group()), t = int(gl_LocalInvocationID.x);
  int size = row < p.rows ? p.size : 0;
  int r = row;
  int c2 = r % p.k2;
  r /= p.k2;
  int base = c2 * p.a2 + r % p.k1 * p.a1 + r / p.k1 * p.a0;
  uvec2 sum = kZeroDouble;
  for (int i = t; i < size; i += 64) sum = add_doubles(sum, numbers[x[place(base, i)] + p.offset]);
  part[t] = sum;
  for (int half_count = 32; half_count > 0; half_count /= 2) {
    barrier();
    if (t < half_count) {
      sum = add_doubles(sum, part[t + half_count]);
      part[t] = sum;
    }
  }
  if (t != 0 || row >= p.rows) return;
  uvec2 at = order_of(sum);
  int found = 0;
  for (int step = 128; step > 0; step /= 2) {
    if (!less64(at, numbers[256 + found + step - 1])) found += step;
  }
  y[row] = found - p.offset;
}
