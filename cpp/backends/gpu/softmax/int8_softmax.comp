#version 450
// Slices [outer, size, inner] of quantised tensors along size, as the reference has them in 64-bit floats: one workgroup
// per slice, whose sum one invocation makes in the reference's order. m is the slice's largest.
// Softmax:
//   numbers [256][256] doubles: exp(x - m) by the bytes of m and x; then 255 thresholds of the bytes of y
// -DNORM: slices divided by a norm, with ROOT 1 the root of the sum.
//   numbers [256] doubles: what a byte adds to the sum; then [256] the bytes' numbers; then 255 thresholds
// -DLOG: x - m - log(sum of exp(x - m)). The logarithm is right to 2^-50 of itself. Where the reference's, which is
// near to it too, could make another byte, the element is reported.
//   numbers [256][256], 255 as of softmax, one of nothing; then [256] the bytes' numbers; [128] 1 / c, c = 1 + j / 128;
//     [21][128] log(2^k c); [8] the coefficients of log(1 + r) / r; 1 + 2^-48; 1 - 2^-48
// Shared memory: 64 integers and 2 doubles.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#define INT32
#define ERROR_RECORD 3
#include "prelude.glsl"
#include "double.glsl"
#ifdef LOG
#include "error_record.glsl"
#endif
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) readonly buffer Numbers { uvec2 numbers[]; };
layout(set = 0, binding = 2) writeonly buffer Y { int y[]; };
layout(push_constant) uniform Params { INT8_SOFTMAX_PARAMS } p;
#ifdef NORM
INT8_NORM_CONSTANTS
const int kDividends = 256, kThresholds = 512;
#else
shared int part[64];
const int kDividends = 0, kThresholds = 65536;
#endif
shared uvec2 total[2];

#ifdef LOG
const int kReals = 65792, kInverses = 66048, kLogs = 66176, kSeries = 68864, kMargins = 68872;
// v is 1 or more and at most 2^21.
uvec2 log_of_double(uvec2 v) {
  int k = exponent_of(v) - 1023, j = int(v.y >> 13 & 127u);
  uvec2 above = add_doubles(uvec2(v.x, v.y & 0xfffffu | 0x3ff00000u), uvec2(0u, 0xbff00000u | uint(j) << 13));
  uvec2 r = multiply_doubles(above, numbers[kInverses + j]), s = numbers[kSeries + 7];
  // The last turn adds log(2^k c).
  for (int i = 6; i >= -1; i--) {
    s = add_doubles(multiply_doubles(s, r), numbers[i < 0 ? kLogs + k * 128 + j : kSeries + i]);
  }
  return s;
}
#endif

int stored(uvec2 v) {
  uvec2 place = order_of(v);
  int found = 0;
  for (int step = 128; step > 0; step /= 2) {
    if (!less64(place, numbers[kThresholds + found + step - 1])) found += step;
  }
  return found;
}

void main() {
  int slice = int(linear_group()), t = int(gl_LocalInvocationID.x);
  bool real = slice < p.slices;
  int base = real ? slice / p.inner * p.size * p.inner + slice % p.inner : 0;
  int size = real ? p.size : 0;
#ifdef NORM
  int first = p.offset;
#else
  int largest = 0;
  for (int i = t; i < size; i += 64) largest = max(largest, x[base + i * p.inner] + p.offset);
  part[t] = largest;
  for (int half_count = 32; half_count > 0; half_count /= 2) {
    barrier();
    if (t < half_count) part[t] = max(part[t], part[t + half_count]);
  }
  barrier();
  int first = part[0] * 256 + p.offset;
#endif
  if (t == 0) {
    uvec2 sum = kZeroDouble;
    for (int i = 0; i < size; i++) sum = add_doubles(sum, numbers[first + x[base + i * p.inner]]);
#ifdef NORM
    if (ROOT == 1) sum = root_of_double(sum);
#endif
#ifdef LOG
    sum = log_of_double(size > 0 ? sum : uvec2(0u, 0x3ff00000u));
    for (int k = 0; k < 2; k++) total[k] = negative(multiply_doubles(sum, numbers[kMargins + k]));
#else
    total[0] = sum;
#endif
  }
  barrier();
  for (int i = t; i < size; i += 64) {
    int own = x[base + i * p.inner];
#ifdef LOG
    uvec2 above = add_doubles(numbers[kReals + own + p.offset], negative(numbers[kReals + part[0]]));
    // Both margins in one loop: a caller of the arithmetic has a copy of its long code.
    int made = 0;
    for (int k = 0; k < 2; k++) {
      int other = made;
      made = stored(add_doubles(above, total[k]));
      if (k == 1 && made != other) report(kUndecided, own, 0);
    }
#else
    // Of a norm of 0 all dividends are 0, and so is what divide_doubles makes of them.
    int made = stored(divide_doubles(numbers[kDividends + first + own], total[0]));
#endif
    y[base + i * p.inner] = made - p.offset;
  }
}
