#version 450
// y[batch, M, N] = requantised A B + c of rows of quantised integers: 4 rows by 4 columns per invocation.
//   A element (m, k) at a_row * m + a_col * k of its matrix
//   B with PACKED [ceil(N / 4)][K] of 4 columns, a byte each, one matrix; else element (k, n) at b_row * k + b_col * n
//   q [ceil(N / 4)][2] ivec4: bits of the multipliers, zero points of B; c int32 at c_row * m + c_col * n, read if BIAS
//   is 1
// Matrices of the batch: batch = outer * inner; their offsets are outer * x_outer + inner * x_inner.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "int8.glsl"
layout(local_size_x = 16, local_size_y = 4) in;
INT8_GEMM_CONSTANTS
layout(set = 0, binding = 0) readonly buffer A { int a[]; };
layout(set = 0, binding = 1) readonly buffer W { int b[]; };
layout(set = 0, binding = 2) readonly buffer C { int c[]; };
layout(set = 0, binding = 3) readonly buffer Q { ivec4 q[]; };
layout(set = 0, binding = 4) writeonly buffer Y { int y[]; };
layout(push_constant) uniform Params { INT8_GEMM_PARAMS } p;

void main() {
  int n = int(gl_GlobalInvocationID.x) * 4, m = int(gl_GlobalInvocationID.y) * 4;
  int batch = int(gl_WorkGroupID.z) + p.first_batch;
  if (n >= p.N || m >= p.M) return;
  int outer = batch / p.inner, inner = batch % p.inner;
  int at[4], bt[4];
  for (int j = 0; j < 4; j++) {
    at[j] = outer * p.a_outer + inner * p.a_inner + min(m + j, p.M - 1) * p.a_row;
    bt[j] = outer * p.b_outer + inner * p.b_inner + min(n + j, p.N - 1) * p.b_col;
  }
  ivec4 b_zero = q[n / 4 * 2 + 1];
  ivec4 sum[4];
  for (int j = 0; j < 4; j++) sum[j] = ivec4(0);
  for (int k = 0; k < p.K; k++) {
    int r = k * p.b_row;
    ivec4 row;
    if (PACKED == 1) {
      row = unpack_bytes(uint(b[n / 4 * p.K + k]));
    } else {
      row = ivec4(b[bt[0] + r], b[bt[1] + r], b[bt[2] + r], b[bt[3] + r]);
    }
    row -= b_zero;
    for (int j = 0; j < 4; j++) sum[j] += (a[at[j] + k * p.a_col] - p.a_zero) * row;
  }
  vec4 scale = intBitsToFloat(q[n / 4 * 2]);
  for (int j = 0; j < 4; j++) {
    if (m + j >= p.M) break;
    ivec4 bias = ivec4(0);
    if (BIAS == 1) {
      for (int l = 0; l < 4; l++) bias[l] = c[(m + j) * p.c_row + min(n + l, p.N - 1) * p.c_col];
    }
    ivec4 v = requantize(sum[j], bias, scale, p.y_zero, p.low, p.high);
    int to = (batch * p.M + m + j) * p.N + n;
    for (int l = 0; l < 4; l++) {
      if (n + l < p.N) y[to + l] = v[l];
    }
  }
}
