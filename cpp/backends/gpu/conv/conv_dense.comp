#version 450
// Convolution of dense tensors, one to three spatial dimensions, any groups; -DTRANSPOSED: its transpose. One output
// per invocation: for what has no kernel on NC4HW4 buffers.
//   w [M, C / group, taps]; transposed [C, M / group, taps]
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#include "activation.glsl"
layout(local_size_x = 64) in;
CONV_DENSE_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { S x[]; };
layout(set = 0, binding = 1) readonly buffer W { S w[]; };
layout(set = 0, binding = 2) readonly buffer Bias { S bias[]; };
layout(set = 0, binding = 3) writeonly buffer Y { S y[]; };
// Strides, dilations and pads before, of three dimensions.
layout(push_constant) uniform Params { CONV_DENSE_PARAMS } p;

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int k = i;
  int o2 = k % p.o2; k /= p.o2;
  int o1 = k % p.o1; k /= p.o1;
  int o0 = k % p.o0; k /= p.o0;
  int m = k % p.M, image = k / p.M;
  int group = m / p.group_m;
  int plane = p.i0 * p.i1 * p.i2, taps = K0 * K1 * K2;
  float sum = float(bias[m]);
  for (int c = 0; c < p.group_c; c++) {
    int from = (image * p.C + group * p.group_c + c) * plane;
#ifdef TRANSPOSED
    int wi = ((group * p.group_c + c) * p.group_m + m % p.group_m) * taps;
#else
    int wi = (m * p.group_c + c) * taps;
#endif
    for (int k0 = 0; k0 < K0; k0++) {
      for (int k1 = 0; k1 < K1; k1++) {
        for (int k2 = 0; k2 < K2; k2++) {
#ifdef TRANSPOSED
          int z = o0 + p.p0 - k0 * p.d0, yy = o1 + p.p1 - k1 * p.d1, xx = o2 + p.p2 - k2 * p.d2;
          bool inside = z >= 0 && yy >= 0 && xx >= 0 && z % p.s0 == 0 && yy % p.s1 == 0 && xx % p.s2 == 0;
          z /= p.s0; yy /= p.s1; xx /= p.s2;
          inside = inside && z < p.i0 && yy < p.i1 && xx < p.i2;
#else
          int z = o0 * p.s0 - p.p0 + k0 * p.d0, yy = o1 * p.s1 - p.p1 + k1 * p.d1, xx = o2 * p.s2 - p.p2 + k2 * p.d2;
          bool inside = z >= 0 && z < p.i0 && yy >= 0 && yy < p.i1 && xx >= 0 && xx < p.i2;
#endif
          if (inside) sum += float(x[from + (z * p.i1 + yy) * p.i2 + xx]) * float(w[wi + (k0 * K1 + k1) * K2 + k2]);
        }
      }
    }
  }
  y[i] = S(activate(ACT, vec4(sum), p.a, p.b).x);
}
