// attention on dense tensors, with masks, windows and heads that share keys; caches, soft caps and inner results are
// refused.
#include <cmath>

#include "backends/gpu/attention/params.h"
#include "backends/gpu/lowering.h"

namespace pinnace::gpu {
namespace {

/// Elements from batch to batch, head to head and token to token of [B, heads, tokens, width], or of [B, tokens,
/// heads * width].
struct Strides {
  int64_t batch, head, token;
  Strides(bool flat, int64_t heads, int64_t tokens, int64_t width)
      : batch(heads * tokens * width), head(flat ? width : tokens * width), token(flat ? heads * width : width) {}
};

Status check_form(NodeLowering& n) {
  for (int i = 0; i < 3; ++i) PINNACE_TRY(n.require_float(i));
  if (n.view().output_count() > 1) return n.refuse(Rule::kAttribute, "outputs beside y");
  for (int i = 4; i < n.view().input_count(); ++i) {
    if (n.has(i)) return n.refuse(Rule::kAttribute, i == 6 ? "nonpad_kv_seqlen" : "past_key and past_value");
  }
  if (n.view().attr_float("softcap") != 0) {
    return n.refuse(Rule::kAttribute, str_cat("softcap ", n.view().attr_float("softcap")));
  }
  if (n.has(3) && n.in(3).dtype != DType::kBool) PINNACE_TRY(n.require_float(3));
  return {};
}

}  // namespace

Status lower_attention(NodeLowering& n) {
  PINNACE_TRY(check_form(n));
  const TensorType &q = n.in(0), &k = n.in(1), &v = n.in(2);
  const bool flat = q.rank() == 3;
  const int64_t B = q.shape[0].size;
  const int64_t Hq = flat ? n.view().attr_int("q_num_heads") : q.shape[1].size;
  const int64_t Hk = flat ? n.view().attr_int("kv_num_heads") : k.shape[1].size;
  const int64_t Sq = q.shape[flat ? 1 : 2].size, Sk = k.shape[flat ? 1 : 2].size;
  const int64_t E = flat ? q.shape[2].size / Hq : q.shape[3].size, F = flat ? v.shape[2].size / Hk : v.shape[3].size;
  const int64_t chunks = (F + 63) / 64;
  if (E == 0) return n.refuse(Rule::kAttribute, to_string(q));
  const auto wanted = static_cast<float>(n.view().attr_float("scale"));
  const float scale = wanted != 0 ? wanted : static_cast<float>(1 / std::sqrt(static_cast<double>(E)));
  const auto window = [&](const char* name) {  // far beyond any key, and sums of it and a position are integers
    const int64_t size = n.view().attr_int(name);
    return size < 0 ? int64_t{1} << 30 : std::min(size, int64_t{1} << 30);
  };
  const int64_t right = n.view().attr_int("is_causal") != 0 ? 0 : window("right_window_size");
  const Strides qs(flat, Hq, Sq, E), ks(flat, Hk, Sk, E), vs(flat, Hk, Sk, F), ys(flat, Hq, Sq, F);
  int64_t mask_steps[3] = {}, mask_size = 0;  // by batch, head and query; 0 where it broadcasts
  const bool masked = n.has(3);
  if (masked) {
    const TensorType& mask = n.in(3);
    mask_size = mask.shape.back().size;
    int64_t step = mask_size;
    for (int d = mask.rank() - 2, to = 2; d >= 0; --d, --to) {
      const int64_t size = mask.shape[static_cast<size_t>(d)].size;
      mask_steps[to] = size == 1 ? 0 : step;
      step *= size;
    }
  }
  const bool words = masked && n.in(3).dtype == DType::kBool;
  const bool none = masked && mask_size == 0;  // no key takes part
  const TensorId query = n.dense(0), key = n.dense(1), value = n.dense(2);
  const TensorId mask = masked && !none ? n.dense(3) : query, y = n.make_dense();
  const int64_t seen = std::min(Sk, window("left_window_size") + right + 16);  // by the 16 queries of a workgroup
  const int64_t tiles = std::min((Sk + 31) / 32, seen / 32 + 2);
  n.loops(loop_turns(tiles, loop_turns((E + 3) / 4) + loop_turns(32)));
  n.step(E % 4 == 0 && F % 4 == 0 ? KernelId::attention_vectors : KernelId::attention,
         AttentionConstants{.MASK = masked && !none ? (words ? 2 : 1) : 0},
         AttentionParams{.Sq = Sq,
                         .Sk = none ? 0 : Sk,
                         .E = E,
                         .F = F,
                         .heads = Hq,
                         .shared_by = Hq / std::max<int64_t>(Hk, 1),
                         .chunks = chunks,
                         .left = window("left_window_size"),
                         .right = right,
                         .q_batch = qs.batch,
                         .q_head = qs.head,
                         .q_token = qs.token,
                         .k_batch = ks.batch,
                         .k_head = ks.head,
                         .k_token = ks.token,
                         .v_batch = vs.batch,
                         .v_head = vs.head,
                         .v_token = vs.token,
                         .y_batch = ys.batch,
                         .y_head = ys.head,
                         .y_token = ys.token,
                         .mask_batch = mask_steps[0],
                         .mask_head = mask_steps[1],
                         .mask_query = mask_steps[2],
                         .mask_size = mask_size,
                         .scale = static_cast<double>(scale)},
         {query, key, value, mask, mask, y},
         {groups_of(Sq, 16), static_cast<uint32_t>(Hq * chunks), static_cast<uint32_t>(B)},
         static_cast<double>(B * Hq * Sq) * static_cast<double>(Sk * (E + F)));
  return {};
}

}  // namespace pinnace::gpu
