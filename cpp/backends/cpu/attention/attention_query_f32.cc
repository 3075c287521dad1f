// attention of one query in float32, as a model that makes one token at a time asks for: keys and values are read once,
// where they lie.
#include <cmath>

#include "backends/cpu/attention/attention_f32.h"
#include "backends/cpu/attention/attention_query_f32.h"
#include "backends/cpu/f32_isa.h"
#include "backends/cpu/softmax/softmax_f32.h"

namespace pinnace::cpu {
namespace {

/// Keys of a part. Parts are divided among the threads and put together in their order, so that no bit depends on the
/// number of threads.
constexpr int64_t kPart = 512;

bool query_takes(const KernelNode& node) {
  return attention_takes(node) && heads_of(node).Sq == 1;
}

/// Scores of all heads, and what each part leaves: its mixed values, the largest score, the sum.
struct QueryRoom {
  int64_t parts, row, scores, total;
  explicit QueryRoom(const Heads& s)
      : parts((s.Sk + kPart - 1) / kPart),
        row(s.F + 2),
        scores(s.B * s.Hq * parts * row),
        total(scores + s.B * s.Hq * s.Sk) {}
};
int64_t query_scratch_bytes(const KernelNode& node, int) {
  return QueryRoom(heads_of(node)).total * 4;
}

/// One part of the heads that share keys and values: a block of these at a time, which all of them read from the
/// nearest cache.
template <const F32Isa& isa>
void query_part(const Heads& s, const QueryF32& shared, const TensorView* mask, int64_t pair, int64_t first,
                int64_t keys, float* scores, float* left, ptrdiff_t left_row) {
  const int64_t group = s.Hq / s.Hk, b = pair / s.Hk;
  const int64_t block = group == 1 ? keys : std::max<int64_t>(4, 4096 / std::max(s.E, s.F) / 4 * 4);
  float mask_row[kPart];
  const auto query = [&](int64_t g, int64_t j) {
    QueryF32 q = shared;
    q.q += g * s.q_head;
    q.k += j * q.k_row;
    q.v += j * q.v_row;
    q.keys = std::min(block, keys - j);
    q.scores = scores + g * s.Sk + j;
    q.y = left + g * left_row;
    return q;
  };
  for (int64_t g = 0; g < group; ++g) {
    std::fill_n(left + g * left_row, s.F, 0.0f);
    left[g * left_row + s.F] = -__builtin_inff();
  }
  for (int64_t j = 0; j < keys; j += block) {
    for (int64_t g = 0; g < group; ++g) {
      QueryF32 q = query(g, j);
      if (mask) q.bias = Mask(*mask, s.Sk).row(b, pair % s.Hk * group + g, 0, first + j, q.keys, mask_row);
      float& largest = left[g * left_row + s.F];
      largest = std::max(largest, query_loops_f32<isa.loops>.scores(q));
    }
  }
  for (int64_t g = 0; g < group; ++g) {
    left[g * left_row + s.F + 1] = softmax_loops_f32<isa.loops>.exp_sum(scores + g * s.Sk, scores + g * s.Sk, keys);
  }
  for (int64_t j = 0; j < keys; j += block) {
    for (int64_t g = 0; g < group; ++g) query_loops_f32<isa.loops>.mix(query(g, j));
  }
}

/// y = what the parts of a head left, each by exp(its largest score - the largest of all), by the sum of all.
void gather_parts(const float* from, int64_t parts, int64_t width, float* y) {
  const int64_t row = width + 2;
  float largest = -__builtin_inff(), sum = 0;
  for (int64_t p = 0; p < parts; ++p) largest = std::max(largest, from[p * row + width]);
  std::fill_n(y, width, 0.0f);
  for (int64_t p = 0; p < parts; ++p, from += row) {
    // A part that no key takes part in has a sum of 0, or NaN.
    const float share = from[width] == -__builtin_inff() ? 1.0f : std::exp(from[width] - largest);
    sum += share * from[width + 1];
    for (int64_t f = 0; f < width; ++f) y[f] += share * from[f];
  }
  const float share = sum == 0 ? 0.0f : 1.0f / sum;
  for (int64_t f = 0; f < width; ++f) y[f] *= share;
}

template <const F32Isa& isa>
Status query_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                 std::span<const TensorView> out) {
  const Heads s = heads_of(node);
  const QueryRoom room(s);
  const float scale = attention_scale(node, s);
  // The first query of a causal attention sees the first key.
  const int64_t keys = node.attr_int("is_causal") != 0 ? 1 : s.Sk, parts = (keys + kPart - 1) / kPart;
  const int64_t group = s.Hq / s.Hk;
  auto* left = reinterpret_cast<float*>(context.scratch);
  context.parallel(s.B * s.Hk * parts, [&](int64_t t) {
    const int64_t pair = t / parts, b = pair / s.Hk, hk = pair % s.Hk, first = t % parts * kPart;
    const QueryF32 shared{
        .q = in[0].data<float>() + b * s.Hq * s.E + hk * group * s.q_head,
        .k = in[1].data<float>() + b * s.Hk * s.Sk * s.E + hk * s.k_head + first * s.k_token,
        .k_row = s.k_token,
        .v = in[2].data<float>() + b * s.Hk * s.Sk * s.F + hk * s.v_head + first * s.v_token,
        .v_row = s.v_token,
        .size = s.E,
        .width = s.F,
        .scale = scale,
    };
    query_part<isa>(s, shared, in.size() > 3 && in[3].present() ? &in[3] : nullptr, pair, first,
                    std::min(kPart, keys - first), left + room.scores + pair * group * s.Sk + first,
                    left + (pair * group * parts + t % parts) * room.row, parts * room.row);
  });
  for (int64_t h = 0; h < s.B * s.Hq; ++h) {
    gather_parts(left + h * parts * room.row, parts, s.F,
                 out[0].data<float>() + h / s.Hq * s.Hq * s.F + h % s.Hq * s.y_head);
  }
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make_query() {
  return {
      .takes = query_takes, .by_shape = always_by_shape, .scratch_bytes = query_scratch_bytes, .run = query_run<isa>};
}

}  // namespace

PINNACE_KERNELS_F32(attention_query_f32, make_query)

}  // namespace pinnace::cpu
