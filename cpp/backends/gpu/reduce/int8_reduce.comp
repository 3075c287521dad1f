#version 450
// Rows of quantised integers as the reference reduces them in 64-bit floats; rows may lie in up to three strided
// dimensions. Which byte the result becomes, thresholds say: it may be any function that rises with what is found here.
// Sums of a million of the type's numbers are exact, so any order gives their bits: one workgroup per row.
//   numbers [256] doubles: what a byte adds; then 255 thresholds of the bytes of y; then the byte that sums below zero
//     become, 256 for what the thresholds say
// -DORDERED: what rounds on the way, in the reference's order, by one invocation per row. KIND 0: sum; 1: product; 2:
// sum of exp(x - m), m the row's largest: numbers [256][256] by the bytes of m and x, then thresholds [256][255] by m.
// Shared memory: 64 doubles, ORDERED none.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#define INT32
#include "prelude.glsl"
#include "double.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { int y[]; };
layout(set = 0, binding = 2) readonly buffer Numbers { uvec2 numbers[]; };
// As in reduce_int32.comp.
layout(push_constant) uniform Params { INT8_REDUCE_PARAMS } p;
#ifdef ORDERED
INT8_REDUCE_CONSTANTS
#else
shared uvec2 part[64];
#endif

int beginning(int row) {
  int c2 = row % p.k2;
  row /= p.k2;
  return c2 * p.a2 + row % p.k1 * p.a1 + row / p.k1 * p.a0;
}
int byte_at(int base, int i) {
  int c2 = i % p.r2;
  i /= p.r2;
  return x[base + c2 * p.b2 + i % p.r1 * p.b1 + i / p.r1 * p.b0] + p.offset;
}
// The byte that thresholds from `first` on give.
int stored(uvec2 v, int first) {
  uvec2 at = order_of(v);
  int found = 0;
  for (int step = 128; step > 0; step /= 2) {
    if (!less64(at, numbers[first + found + step - 1])) found += step;
  }
  return found;
}

void main() {
#ifdef ORDERED
  int row = linear_item();
  if (row >= p.rows) return;
  int base = beginning(row), largest = 0;
  if (KIND == 2) {
    for (int i = 0; i < p.size; i++) largest = max(largest, byte_at(base, i));
  }
  int first = largest * 256;
  uvec2 v = numbers[first + byte_at(base, 0)];
  for (int i = 1; i < p.size; i++) {
    uvec2 own = numbers[first + byte_at(base, i)];
    v = KIND == 1 ? multiply_doubles(v, own) : add_doubles(v, own);
  }
  y[row] = stored(v, KIND == 2 ? 65536 + largest * 255 : 256) - p.offset;
#else
  int row = int(linear_group()), t = int(gl_LocalInvocationID.x);
  int size = row < p.rows ? p.size : 0, base = beginning(row);
  uvec2 sum = kZeroDouble;
  for (int i = t; i < size; i += 64) sum = add_doubles(sum, numbers[byte_at(base, i)]);
  part[t] = sum;
  for (int half_count = 32; half_count > 0; half_count /= 2) {
    barrier();
    if (t < half_count) {
      sum = add_doubles(sum, part[t + half_count]);
      part[t] = sum;
    }
  }
  if (t != 0 || row >= p.rows) return;
  int below_zero = int(numbers[511].x);
  y[row] = (sum.y >> 31 == 1u && below_zero < 256 ? below_zero : stored(sum, 256)) - p.offset;
#endif
}
