#version 450
// y[batch, M, N] = (A - a_zero) (B - b_zero) of integers, modulo 2^32: 4 rows by 4 columns per invocation.
//   A element (m, k) at a_row * m + a_col * k of its matrix
//   B with PACKED [ceil(N / 4)][K] of 4 columns, a byte each, plus `flip`, one matrix; else element (k, n) at
//   b_row * k + b_col * n
//   zero points, where ZEROS has bit 0 (of A) or 1 (of B): of row m at m % za_rows * za_row, of column n at zb_col * n
// Matrices of the batch: batch = outer * inner; their offsets are outer * x_outer + inner * x_inner.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#define INT32
#include "prelude.glsl"
#include "int8.glsl"
layout(local_size_x = 16, local_size_y = 4) in;
GEMM_INT32_CONSTANTS
layout(set = 0, binding = 0) readonly buffer A { int a[]; };
layout(set = 0, binding = 1) readonly buffer W { int b[]; };
layout(set = 0, binding = 2) readonly buffer ZA { int a_zero[]; };
layout(set = 0, binding = 3) readonly buffer ZB { int b_zero[]; };
layout(set = 0, binding = 4) writeonly buffer Y { int y[]; };
layout(push_constant) uniform Params { GEMM_INT32_PARAMS } p;

void main() {
  int n = int(gl_GlobalInvocationID.x) * 4, m = int(gl_GlobalInvocationID.y) * 4, batch = int(gl_WorkGroupID.z);
  if (n >= p.N || m >= p.M) return;
  int outer = batch / p.inner, inner = batch % p.inner;
  int at[4], bt[4];
  ivec4 row_zero = ivec4(0), column_zero = ivec4(0);
  for (int j = 0; j < 4; j++) {
    int row = min(m + j, p.M - 1), column = min(n + j, p.N - 1);
    at[j] = outer * p.a_outer + inner * p.a_inner + row * p.a_row;
    bt[j] = outer * p.b_outer + inner * p.b_inner + column * p.b_col;
    if ((ZEROS & 1) != 0) row_zero[j] = a_zero[outer * p.za_outer + inner * p.za_inner + row % p.za_rows * p.za_row];
    if ((ZEROS & 2) != 0) column_zero[j] = b_zero[outer * p.zb_outer + inner * p.zb_inner + column * p.zb_col];
  }
  column_zero += ivec4(p.flip);
  uvec4 sum[4];  // an int must not overflow in Metal's language
  for (int j = 0; j < 4; j++) sum[j] = uvec4(0u);
  for (int k = 0; k < p.K; k++) {
    int r = k * p.b_row;
    ivec4 row;
    if (PACKED == 1) {
      row = unpack_bytes(uint(b[n / 4 * p.K + k]));
    } else {
      row = ivec4(b[bt[0] + r], b[bt[1] + r], b[bt[2] + r], b[bt[3] + r]);
    }
    row -= column_zero;
    for (int j = 0; j < 4; j++) sum[j] += uvec4((a[at[j] + k * p.a_col] - row_zero[j]) * row);
  }
  for (int j = 0; j < 4; j++) {
    if (m + j >= p.M) break;
    int to = (batch * p.M + m + j) * p.N + n;
    for (int l = 0; l < 4; l++) {
      if (n + l < p.N) y[to + l] = int(sum[j][l]);
    }
  }
}
