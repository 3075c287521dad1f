// The loops of attention_query_f32.h.
#include "backends/cpu/attention/attention_query_f32.h"
#include "backends/cpu/reduce/rows_f32.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

using Four = VectorOf<4>::T;
/// The sums of a register's lanes by their number modulo 4.
inline Four quarters(VectorOf<4>::T v) {
  return v;
}
#if PINNACE_LANES >= 8
inline Four quarters(VectorOf<8>::T v) {
  return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
}
#endif
#if PINNACE_LANES == 16
inline Four quarters(VectorOf<16>::T v) {
  return quarters(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                  __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
}
#endif

/// Four keys at a time, whose sums across registers share their last steps.
float scores(const QueryF32& a) {
  for (int64_t j = 0; j < a.keys; j += 4) {
    const float* k[4];
    for (int64_t r = 0; r < 4; ++r) k[r] = a.k + (j + r < a.keys ? j + r : a.keys - 1) * a.k_row;
    V sum[4] = {};
    int64_t e = 0;
    for (; e + kLanes <= a.size; e += kLanes) {
      const V q = load(a.q + e);
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) sum[r] += q * load(k[r] + e);
    }
    if (e < a.size) {
      const V q = load_part(a.q + e, a.size - e, 0);
      for (int r = 0; r < 4; ++r) sum[r] += q * load_part(k[r] + e, a.size - e, 0);
    }
    const Four s0 = quarters(sum[0]), s1 = quarters(sum[1]), s2 = quarters(sum[2]), s3 = quarters(sum[3]);
    const Four low = __builtin_shufflevector(s0, s1, 0, 4, 1, 5) + __builtin_shufflevector(s0, s1, 2, 6, 3, 7);
    const Four high = __builtin_shufflevector(s2, s3, 0, 4, 1, 5) + __builtin_shufflevector(s2, s3, 2, 6, 3, 7);
    Four all = __builtin_shufflevector(low, high, 0, 1, 4, 5) + __builtin_shufflevector(low, high, 2, 3, 6, 7);
    all *= a.scale;
    const int64_t some = a.keys - j < 4 ? a.keys - j : 4;
    __builtin_memcpy(a.scores + j, &all, sizeof(float) * static_cast<size_t>(some));
  }
  for (int64_t j = 0; a.bias && j < a.keys; ++j) {
    const float b = a.bias[j];
    a.scores[j] = b == -__builtin_inff() ? b : a.scores[j] + b;
  }
  return largest_of(a.scores, a.keys);
}

/// REGISTERS of the mixed values, from column f on, if there are as many; the last may be part of one. The next column.
template <int REGISTERS>
int64_t mix_of(const QueryF32& a, int64_t f) {
  if (f + (REGISTERS - 1) * kLanes >= a.width) return f;
  const int64_t last = a.width - f - (REGISTERS - 1) * kLanes;
  float* y = a.y + f;
  V sum[REGISTERS];
  for (int r = 0; r < REGISTERS - 1; ++r) sum[r] = load(y + r * kLanes);
  sum[REGISTERS - 1] = load_part(y + (REGISTERS - 1) * kLanes, last, 0);
  for (int64_t j = 0; j < a.keys; ++j) {
    const float p = a.scores[j];
    if (p == 0) continue;
    const float* v = a.v + j * a.v_row + f;
    const V share = splat(p);
#pragma GCC unroll 8
    for (int r = 0; r < REGISTERS - 1; ++r) sum[r] += share * load(v + r * kLanes);
    v += (REGISTERS - 1) * kLanes;
    sum[REGISTERS - 1] += share * (last >= kLanes ? load(v) : load_part(v, last, 0));
  }
  for (int r = 0; r < REGISTERS - 1; ++r) store(y + r * kLanes, sum[r]);
  store_part(y + (REGISTERS - 1) * kLanes, sum[REGISTERS - 1], last);
  return f + REGISTERS * kLanes;
}

void mix(const QueryF32& a) {
  for (int64_t f = 0; f < a.width;) {
    for (int64_t next = mix_of<8>(a, f); next != f; next = mix_of<8>(a, f)) f = next;
    f = mix_of<4>(a, f);
    f = mix_of<2>(a, f);
    f = mix_of<1>(a, f);
  }
}

}  // namespace
}  // namespace PINNACE_ISA

const QueryLoops PINNACE_FOR_ISA(query_loops_f32) = {PINNACE_ISA::scores, PINNACE_ISA::mix};

}  // namespace pinnace::cpu
