#version 450
// y = softmax(scale * q k^T + mask) v per head, keys by tiles of 32 with a running maximum and sum, so that scores
// never leave the workgroup. One workgroup makes 16 queries of one head in 64 columns of v:
//   scores   4 queries x 2 keys per invocation, to shared memory
//   weights  exp(score - largest so far), a quarter of a query's keys per invocation
//   sums     4 queries x 4 columns per invocation, scaled down whenever the maximum grows
// Query i sees key j where -left <= j - i <= right. MASK 1: floats, added; 2: int32, not 0 takes part; keys from
// mask_size on take no part. Such a key may hold anything. A query that sees no key gives zeros.
// -DVECTORS: E and F are multiples of 4, loads are of 4 elements. Shared memory: 656 floats.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#include "prelude.glsl"
layout(local_size_x = 64) in;
ATTENTION_CONSTANTS
#ifdef VECTORS
#define ELEMENT S4
#else
#define ELEMENT S
#endif
layout(set = 0, binding = 0) readonly buffer Q { ELEMENT q[]; };
layout(set = 0, binding = 1) readonly buffer K { ELEMENT k[]; };
layout(set = 0, binding = 2) readonly buffer V { ELEMENT v[]; };
layout(set = 0, binding = 3) readonly buffer Bias { S bias[]; };
layout(set = 0, binding = 4) readonly buffer Words { uint words[]; };
layout(set = 0, binding = 5) writeonly buffer Y { ELEMENT y[]; };
// Of q, k, v, y: elements from batch to batch, head to head, token to token. Of the mask: batch, head, query.
layout(push_constant) uniform Params { ATTENTION_PARAMS } p;

const int KEYS = 32, ROW = 33;  // a row of scores is one longer: other banks of shared memory
shared float score[16 * ROW];
shared float part[64];
shared float largest[16], total[16], factor[16];

#ifdef VECTORS
#define LOAD(buffer, at, left_over) vec4(buffer[(at) / 4])
#else
#define LOAD(buffer, at, left_over) \
  vec4(float(buffer[at]), (left_over) > 1 ? float(buffer[at + 1]) : 0.0, \
       (left_over) > 2 ? float(buffer[at + 2]) : 0.0, (left_over) > 3 ? float(buffer[at + 3]) : 0.0)
#endif

void main() {
  float none = uintBitsToFloat(0xff800000u);
  int t = int(gl_LocalInvocationID.x), batch = int(gl_WorkGroupID.z);
  int head = int(gl_WorkGroupID.y) / p.chunks, column = int(gl_WorkGroupID.y) % p.chunks * 64 + t % 16 * 4;
  int first_query = int(gl_WorkGroupID.x) * 16, own = t / 16 * 4;  // own to own + 3: scores and sums of these queries
  int q_at[4];
  for (int j = 0; j < 4; j++) {
    q_at[j] = batch * p.q_batch + head * p.q_head + min(first_query + own + j, p.Sq - 1) * p.q_token;
  }
  int k_from = batch * p.k_batch + head / p.shared_by * p.k_head;
  int v_from = batch * p.v_batch + head / p.shared_by * p.v_head;
  int mask_from = batch * p.mask_batch + head * p.mask_head;
  bool stores = column < p.F;
  if (t < 16) {
    largest[t] = none;
    total[t] = 0.0;
  }
  vec4 sum[4];
  for (int j = 0; j < 4; j++) sum[j] = vec4(0.0);
  int begin = max(first_query - p.left, 0) / KEYS * KEYS;
  int end = min(p.Sk, first_query + 16 + p.right);
  for (int tile = begin; tile < end; tile += KEYS) {
    vec2 dots[4];
    for (int j = 0; j < 4; j++) dots[j] = vec2(0.0);
    int key = tile + t % 16;
    int k0 = k_from + min(key, p.Sk - 1) * p.k_token, k1 = k_from + min(key + 16, p.Sk - 1) * p.k_token;
    for (int e = 0; e < p.E; e += 4) {
      vec4 a = LOAD(k, k0 + e, p.E - e), b = LOAD(k, k1 + e, p.E - e);
      for (int j = 0; j < 4; j++) {
        vec4 c = LOAD(q, q_at[j] + e, p.E - e);
        dots[j] += vec2(dot(c, a), dot(c, b));
      }
    }
    barrier();  // all have used the last tile's weights
    for (int j = 0; j < 4; j++) {
      for (int n = 0; n < 2; n++) {
        int query = min(first_query + own + j, p.Sq - 1), at = key + 16 * n;
        float s = dots[j][n] * p.scale;
        bool sees = at < p.Sk && at - query <= p.right && query - at <= p.left;
        if (MASK != 0) {
          sees = sees && at < p.mask_size;
          int m = mask_from + query * p.mask_query + min(at, p.mask_size - 1);
          if (MASK == 1) {
            float more = float(bias[m]);
            s = more == none ? none : s + more;
          } else {
            sees = sees && words[m] != 0u;
          }
        }
        score[(own + j) * ROW + t % 16 + 16 * n] = sees ? s : none;
      }
    }
    barrier();
    int row = t / 4, from = row * ROW + t % 4 * 8;
    float most = none;
    for (int n = 0; n < 8; n++) {
      float s = score[from + n];
      most = s > most ? s : most;
    }
    part[t] = most;
    barrier();
    float before = largest[row];
    most = before;
    for (int n = 0; n < 4; n++) most = part[row * 4 + n] > most ? part[row * 4 + n] : most;
    float level = most == none ? 0.0 : most;
    float added = 0.0;
    for (int n = 0; n < 8; n++) {
      float s = score[from + n];
      float w = s == none ? 0.0 : exp(s - level);
      score[from + n] = w;
      added += w;
    }
    barrier();  // all have read the last maximum and the parts
    part[t] = added;
    if (t % 4 == 0) {
      largest[row] = most;
      factor[row] = before == none ? 0.0 : exp(before - level);
    }
    barrier();
    if (t % 4 == 0) total[row] = total[row] * factor[row] + (part[t] + part[t + 1] + part[t + 2] + part[t + 3]);
    for (int j = 0; j < 4; j++) sum[j] *= factor[own + j];
    if (stores) {
      int count = min(KEYS, p.Sk - tile);
      for (int n = 0; n < count; n++) {
        vec4 value = LOAD(v, v_from + (tile + n) * p.v_token + column, p.F - column);
        for (int j = 0; j < 4; j++) {
          float w = score[(own + j) * ROW + n];
          if (w != 0.0) sum[j] += w * value;  // a value of weight 0 may be infinite
        }
      }
    }
  }
  barrier();
  for (int j = 0; j < 4; j++) {
    int query = first_query + own + j;
    if (!stores || query >= p.Sq) continue;
    float all = total[own + j];
    vec4 made = all == 0.0 ? vec4(0.0) : sum[j] / all;
    int to = batch * p.y_batch + head * p.y_head + query * p.y_token + column;
#ifdef VECTORS
    y[to / 4] = S4(made);
#else
    for (int l = 0; l < 4; l++) {
      if (column + l < p.F) y[to + l] = S(made[l]);
    }
#endif
  }
}
