#version 450
// y[batch, M, N] = act(alpha * A B + beta * c): 4 rows by 4 columns per invocation, nothing shared.
//   A element (m, k) at a_row * m + a_col * k of its matrix
//   B -DPACKED: [ceil(N / 4)][K] vec4 of 4 columns, one matrix; else element (k, n) at b_row * k + b_col * n
//   c [.., ..] at c_row * m + c_col * n, read if BIAS is 1
// -DSPLIT, with PACKED: the sum over K is divided among 8 neighbours, for products of so few results that they would
// leave most of a device idle. Shared memory: 256 vec4.
// Matrices of the batch: batch = outer * inner; their offsets are outer * x_outer + inner * x_inner.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
#include "activation.glsl"
#ifdef SPLIT
layout(local_size_x = 8, local_size_y = 8) in;
shared vec4 part[4 * 64];
#else
layout(local_size_x = 16, local_size_y = 4) in;
#endif
GEMM_CONSTANTS
layout(set = 0, binding = 0) readonly buffer A { S a[]; };
#ifdef PACKED
layout(set = 0, binding = 1) readonly buffer C { S4 b[]; };
#else
layout(set = 0, binding = 1) readonly buffer C { S b[]; };
#endif
layout(set = 0, binding = 2) readonly buffer D { S c[]; };
layout(set = 0, binding = 3) writeonly buffer Y { S y[]; };
layout(push_constant) uniform Params { GEMM_PARAMS } p;

// Row m of the result from column n on, of which `sum` are the products.
void store(int batch, int m, int n, vec4 sum) {
  vec4 v = p.alpha * sum;
  if (BIAS == 1) {
    for (int l = 0; l < 4; l++) v[l] += p.beta * float(c[m * p.c_row + min(n + l, p.N - 1) * p.c_col]);
  }
  v = activate(ACT, v, p.p, p.q);
  int to = (batch * p.M + m) * p.N + n;
  for (int l = 0; l < 4; l++) {
    if (n + l < p.N) y[to + l] = S(v[l]);
  }
}

void main() {
  int batch = int(gl_WorkGroupID.z) + p.first_batch;
#ifdef SPLIT
  int n = int(gl_GlobalInvocationID.y) * 4, m = int(gl_WorkGroupID.x) * 4;
  int slice = int(gl_LocalInvocationID.x), own = int(gl_LocalInvocationID.y) * 8;
  const int STEP = 8;
#else
  int n = int(gl_GlobalInvocationID.x) * 4, m = int(gl_GlobalInvocationID.y) * 4;
  if (n >= p.N || m >= p.M) return;
  const int slice = 0, STEP = 1;
#endif
  int outer = batch / p.inner, inner = batch % p.inner;
  int at[4];
  for (int j = 0; j < 4; j++) at[j] = outer * p.a_outer + inner * p.a_inner + min(m + j, p.M - 1) * p.a_row;
#ifdef PACKED
  int bt = min(n, p.N - 1) / 4 * p.K;
#else
  int bt[4];
  for (int j = 0; j < 4; j++) bt[j] = outer * p.b_outer + inner * p.b_inner + min(n + j, p.N - 1) * p.b_col;
#endif
  vec4 sum[4];
  for (int j = 0; j < 4; j++) sum[j] = vec4(0.0);
  for (int k = slice; k < p.K; k += STEP) {
#ifdef PACKED
    vec4 row = vec4(b[bt + k]);
#else
    int r = k * p.b_row;
    vec4 row = vec4(float(b[bt[0] + r]), float(b[bt[1] + r]), float(b[bt[2] + r]), float(b[bt[3] + r]));
#endif
    for (int j = 0; j < 4; j++) sum[j] += float(a[at[j] + k * p.a_col]) * row;
  }
#ifdef SPLIT
  // The first four neighbours add up and store a row each.
  for (int j = 0; j < 4; j++) part[j * 64 + own + slice] = sum[j];
  barrier();
  if (slice >= 4 || n >= p.N || m + slice >= p.M) return;
  vec4 all = vec4(0.0);
  for (int l = 0; l < 8; l++) all += part[slice * 64 + own + l];
  store(batch, m + slice, n, all);
#else
  for (int j = 0; j < 4; j++) {
    if (m + j < p.M) store(batch, m + j, n, sum[j]);
  }
#endif
}
