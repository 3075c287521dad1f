#version 450
// Steps of one direction of an lstm, gru or rnn: a workgroup runs one sequence, whose state h stays in shared memory;
// an invocation owns every 256th hidden unit. What inputs add to the gates is made before, by one product for all
// steps.
//   g     [rows of x][g_row]  W x + b; this direction's gates begin at g_at; gates in the order of the operator
//   r     [ceil(H / 4)][GATES][H] vec4 of four columns of R, zeros beyond H
//   extra lstm: peepholes [3][H]; gru: the recurrent bias of the hidden gate [H]
//   state [B][2][H] float32 between dispatches: h and c; of a gru that resets first, c holds z during a step
// Shared memory: 4096 floats.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#define SCALAR
#include "prelude.glsl"
#include "functions.glsl"
layout(local_size_x = 256) in;
RECURRENT_CONSTANTS
const int GATES = KIND == 2 ? 4 : KIND == 1 ? 3 : 1;
const int STAGES = KIND == 2 ? 5 : KIND == 1 ? 2 + FORM : 1;
layout(set = 0, binding = 0) readonly buffer G { S g[]; };
layout(set = 0, binding = 1) readonly buffer R { S4 r[]; };
layout(set = 0, binding = 2) readonly buffer E { S extra[]; };
layout(set = 0, binding = 3) readonly buffer L { int lengths[]; };
layout(set = 0, binding = 4) readonly buffer IH { S h0[]; };
layout(set = 0, binding = 5) readonly buffer IC { S c0[]; };
layout(set = 0, binding = 6) buffer St { float state[]; };
layout(set = 0, binding = 7) writeonly buffer Y { S y[]; };
layout(set = 0, binding = 8) writeonly buffer YH { S yh[]; };
layout(set = 0, binding = 9) writeonly buffer YC { S yc[]; };
// Steps [first, first + steps) of `time`. Strides by step and by sequence: of x in rows, of y and of states in
// elements.
layout(push_constant) uniform Params { RECURRENT_PARAMS } p;
shared float h[2048];
shared float next[2048];

// One place for all functions: each call is a copy of them. The last one of an lstm takes its argument as it is.
float gate(int which, float x) {
  if (p.clip > 0.0 && which < 2) x = clip(x, -p.clip, p.clip);
  float a = which == 0 ? p.a0 : which == 1 ? p.a1 : p.a2, b = which == 0 ? p.b0 : which == 1 ? p.b1 : p.b2;
  switch (which == 0 ? F0 : which == 1 ? F1 : F2) {
    case 2: return sigmoid(x);
    case 3: return a * x + b;
    case 4: return x < 0.0 ? a * x : x;
    case 5: return x < a ? 0.0 : x;
    case 6: return a * tanh_safe(b * x);
    case 7: return clip(a * x + b, 0.0, 1.0);
    case 8: return x < 0.0 ? a * expm1_safe(x) : x;
    case 9: return x / (1.0 + abs(x));
    case 10: return softplus(x);
  }
  return x;
}

float part(vec4 v, int at) {
  vec4 w = vec4(r[at]);
  return v.x * w.x + v.y * w.y + v.z * w.z + v.w * w.w;
}
// Row k of every gate's R times h.
vec4 products(int k) {
  vec4 sum = vec4(0.0);
  for (int i = 0; i * 4 < p.H; i++) {
    vec4 v = vec4(h[i * 4], h[i * 4 + 1], h[i * 4 + 2], h[i * 4 + 3]);
    int at = i * GATES * p.H + k;
    sum.x += part(v, at);
    if (KIND > 0) sum.y += part(v, at + p.H);
    if (KIND == 2 || (KIND == 1 && FORM == 1)) sum.z += part(v, at + 2 * p.H);
    if (KIND == 2) sum.w += part(v, at + 3 * p.H);
  }
  return sum;
}

void main() {
  int sequence = int(linear_group()), t = int(gl_LocalInvocationID.x);
  bool inside = sequence < p.batch;
  int length = inside ? lengths[sequence] : 0, end = inside ? min(p.first + p.steps, p.time) : 0;
  int at_h = sequence * 2 * p.H, at_c = at_h + p.H, at_s = p.s_at + sequence * p.s_b;
  for (int k = t; k < 2048; k += 256) {
    float start = 0.0;
    if (inside && k < p.H) {
      if (p.first > 0) {
        start = state[at_h + k];
      } else {
        if (H0 == 1) start = float(h0[at_s + k]);
        state[at_c + k] = C0 == 1 ? float(c0[at_s + k]) : 0.0;
      }
    }
    h[k] = start;
    next[k] = 0.0;
  }
  barrier();
  for (int i = p.first; i < end; i++) {
    bool over = i >= length;
    int place = BACK == 1 && !over ? length - 1 - i : i;
    int from = (place * p.x_t + sequence * p.x_b) * p.g_row + p.g_at, to = place * p.y_t + sequence * p.y_b + p.y_at;
    for (int k = t; k < p.H; k += 256) {
      if (over) {
        y[to + k] = S(0.0);
        continue;
      }
      vec4 sum = products(k);
      for (int j = 0; j < GATES; j++) {
        if (KIND != 1 || j < 2) sum[j] += float(g[from + j * p.H + k]);
      }
      float v[5] = float[5](sum.x, KIND == 2 ? sum.z : sum.y, sum.w, sum.y, 0.0);
      float c = KIND == 2 ? state[at_c + k] : 0.0;
      if (HOLES == 1) {
        v[0] += float(extra[k]) * c;
        v[1] += float(extra[2 * p.H + k]) * c;
      }
      // gru: z, reset, the hidden gate; lstm: in, forget, the cell's, out, the cell.
      for (int j = 0; j < STAGES; j++) {
        if (KIND == 1 && j == 2) v[2] = float(g[from + 2 * p.H + k]) + v[1] * (sum.z + float(extra[k]));
        if (KIND == 2 && j == 3) {
          c = (FORM == 1 ? 1.0 - v[0] : v[1]) * c + v[0] * v[2];
          v[4] = c;
          if (HOLES == 1) v[3] += float(extra[p.H + k]) * c;
        }
        v[j] = gate(j == 2 ? 1 : j == 4 ? 2 : 0, v[j]);
      }
      if (KIND == 0) next[k] = v[0];
      if (KIND == 1) next[k] = FORM == 1 ? (1.0 - v[0]) * v[2] + v[0] * h[k] : v[1] * h[k];
      if (KIND == 2) next[k] = v[3] * v[4];
      if (KIND > 0) state[at_c + k] = KIND == 1 ? v[0] : c;
    }
    barrier();
    for (int k = t; k < p.H; k += 256) {
      if (over) continue;
      float v = next[k];
      if (KIND == 1 && FORM == 0) {  // next is reset * h
        float sum = float(extra[k]) + float(g[from + 2 * p.H + k]);
        for (int j = 0; j * 4 < p.H; j++) {
          sum += part(vec4(next[j * 4], next[j * 4 + 1], next[j * 4 + 2], next[j * 4 + 3]),
                      (j * GATES + 2) * p.H + k);
        }
        float z = state[at_c + k];
        v = (1.0 - z) * gate(1, sum) + z * h[k];
      }
      h[k] = v;
      y[to + k] = S(v);
    }
    barrier();
  }
  for (int k = t; k < p.H; k += 256) {
    if (!inside) continue;
    state[at_h + k] = h[k];
    if (p.y_h == 1) yh[at_s + k] = S(h[k]);
    if (p.y_c == 1) yc[at_s + k] = S(state[at_c + k]);
  }
}
