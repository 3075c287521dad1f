#version 450
// Convolution of rows of quantised integers, one to three spatial dimensions, any groups, and its transpose. One output
// per invocation: for what has no kernel on NC4HW4 buffers.
//   w [M, C / group, taps]; transposed [C, M / group, taps]: with PACKED 1 bytes, four in 32 bits; else int32 of a run
//   c [ceil(M / 4)][3] ivec4 as int8_conv.comp has them; with BIAS 1 the bias is b [M], of a run
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#define INT32
#include "prelude.glsl"
#include "int8.glsl"
layout(local_size_x = 64) in;
INT8_CONV_DENSE_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) readonly buffer W { uint w[]; };
layout(set = 0, binding = 2) readonly buffer P { ivec4 c[]; };
layout(set = 0, binding = 3) writeonly buffer Y { int y[]; };
layout(set = 0, binding = 4) readonly buffer B { int b[]; };
// Strides, dilations and pads before, of three dimensions.
layout(push_constant) uniform Params { INT8_CONV_DENSE_PARAMS } p;

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int k = i;
  int o2 = k % p.o2; k /= p.o2;
  int o1 = k % p.o1; k /= p.o1;
  int o0 = k % p.o0; k /= p.o0;
  int m = k % p.M, image = k / p.M;
  int group = m / p.group_m, taps = K0 * K1 * K2;
  int w_zero = c[(m >> 2) * 3 + 2][m & 3], sum = 0;
  for (int j = 0; j < p.group_c; j++) {
    int channel = group * p.group_c + j;
    int from = (image * p.C + channel) * p.i0 * p.i1 * p.i2;
    int wi = (TRANSPOSED == 1 ? channel * p.group_m + m % p.group_m : m * p.group_c + j) * taps;
    for (int k0 = 0; k0 < K0; k0++) {
      for (int k1 = 0; k1 < K1; k1++) {
        for (int k2 = 0; k2 < K2; k2++) {
          int z, yy, xx;
          bool inside;
          if (TRANSPOSED == 1) {
            z = o0 + p.p0 - k0 * p.d0; yy = o1 + p.p1 - k1 * p.d1; xx = o2 + p.p2 - k2 * p.d2;
            inside = z >= 0 && yy >= 0 && xx >= 0 && z % p.s0 == 0 && yy % p.s1 == 0 && xx % p.s2 == 0;
            z /= p.s0; yy /= p.s1; xx /= p.s2;
            inside = inside && z < p.i0 && yy < p.i1 && xx < p.i2;
          } else {
            z = o0 * p.s0 - p.p0 + k0 * p.d0; yy = o1 * p.s1 - p.p1 + k1 * p.d1; xx = o2 * p.s2 - p.p2 + k2 * p.d2;
            inside = z >= 0 && z < p.i0 && yy >= 0 && yy < p.i1 && xx >= 0 && xx < p.i2;
          }
          if (inside) {
            int at = wi + (k0 * K1 + k1) * K2 + k2;
            int weight = PACKED == 1 ? int(w[at >> 2] >> (8 * (at & 3)) & 255u) : int(w[at]);
            sum += (x[from + (z * p.i1 + yy) * p.i2 + xx] - p.x_zero) * (weight - w_zero);
          }
        }
      }
    }
  }
  int bias = BIAS == 1 ? b[m] : c[(m >> 2) * 3][m & 3];
  float scale = intBitsToFloat(c[(m >> 2) * 3 + 1][m & 3]);
  y[i] = requantize(ivec4(sum), ivec4(bias), vec4(scale), p.y_zero, p.low, p.high).x;
}
