// linear_attention: attention through a state that every token decays, corrects and adds to, in place of a table of all
// pairs of tokens.
//   query       [B, T, Hq * dk]  f32 | f16 | bf16
//   key         [B, T, Hkv * dk]  as query
//   value       [B, T, Hkv * dv]  as query
//   past_state  [B, Hkv, dk, dv]  f32 | f16 | bf16, optional; left out: 0
//   decay       [B, T, Hkv * dk] or [B, T, Hkv]  as query; for the gated rules, and only for them
//   beta        [B, T, Hkv] or [B, T, 1]  as query; for the delta rules, and only for them
//   output         [B, T, Hq * dv]  as query
//   present_state  [B, Hkv, dk, dv]  as past_state, else as query
//   q_num_heads, kv_num_heads  int, required: Hq, a multiple of Hkv
//   scale        float, default 0: 1 / sqrt(dk)
//   update_rule  "linear": S += k v^T; "gated": S = exp(g) S first; "delta": S += b k (v - S^T k)^T; "gated_delta"
//                (default): both. Then output = scale * S^T q, S being that of the key head of q's group
//   chunk_size   int, default 64: a hint to implementations, without meaning for the result
// In double from the first token to the last, rounded once. Source: ONNX LinearAttention, opset 27.
#include <algorithm>
#include <cmath>

#include "ops/lines.h"
#include "ops/move.h"

namespace pinnace {
namespace {
struct Rule {
  bool gated, delta;
};
Result<Rule> rule_of(const NodeView& node) {
  const std::string_view rule = node.attr_string("update_rule");
  const bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") {
    return node.error("update_rule is '", rule, "', must be linear, gated, delta or gated_delta");
  }
  if (gated != node.has_input(4)) return node.error("update_rule ", rule, gated ? " needs" : " takes no", " decay");
  if (delta != node.has_input(5)) return node.error("update_rule ", rule, delta ? " needs" : " takes no", " beta");
  return Rule{gated, delta};
}

/// Size of one of `heads` parts of the last dimension of input i.
Result<Dim> head_size(const NodeView& node, int i, int64_t heads) {
  const Dim all = node.input(i).shape[2];
  if (!all.known()) return Dim();
  if (all.size % heads != 0) {
    return node.error(node.input_name(i), " ", node.input(i), " has no ", heads, " heads");
  }
  return Dim(all.size / heads);
}

Status linear_attention_types(const NodeView& node, std::span<TensorType> out) {
  const int64_t q_heads = node.attr_int("q_num_heads"), heads = node.attr_int("kv_num_heads");
  if (q_heads < 1 || heads < 1 || q_heads % heads != 0) {
    return node.error("q_num_heads ", q_heads, " must be a multiple of kv_num_heads ", heads);
  }
  PINNACE_TRY(rule_of(node).status());
  Dim batch, tokens;
  for (const int i : {0, 1, 2, 4, 5}) {
    if (!node.has_input(i)) continue;
    const TensorType& t = node.input(i);
    const auto b = t.rank() == 3 ? dim_merge(batch, t.shape[0]) : std::nullopt;
    const auto n = t.rank() == 3 ? dim_merge(tokens, t.shape[1]) : std::nullopt;
    if (!b || !n) {
      return node.error(node.input_name(i), " ", t, " must have rank 3 and the batch and tokens of query ",
                        node.input(0));
    }
    batch = *b;
    tokens = *n;
  }
  PINNACE_ASSIGN(Dim dk, head_size(node, 0, q_heads));
  PINNACE_ASSIGN(const Dim key_size, head_size(node, 1, heads));
  PINNACE_ASSIGN(Dim dv, head_size(node, 2, heads));
  const auto same = dim_merge(dk, key_size);
  if (!same) return node.error("heads of query have ", dk.size, " elements, those of key ", key_size.size);
  dk = *same;
  Shape state = {batch, Dim(heads), dk, dv};
  if (node.has_input(3)) {
    const TensorType& past = node.input(3);
    for (size_t d = 0; d < 4; ++d) {
      const auto merged = past.rank() == 4 ? dim_merge(state[d], past.shape[d]) : std::nullopt;
      if (!merged) return node.error("past_state ", past, " must be [B,Hkv,dk,dv], Hkv being ", heads);
      state[d] = *merged;
    }
  }
  if (node.has_input(4)) {
    const Dim last = node.input(4).shape[2];
    if (last.known() && last.size != heads && differ(last, dim_mul(state[2], Dim(heads)))) {
      return node.error("decay ", node.input(4), " must have one element per key head, or per row of it");
    }
  }
  if (node.has_input(5)) {
    const Dim last = node.input(5).shape[2];
    if (last.known() && last.size != heads && last.size != 1) {
      return node.error("beta ", node.input(5), " must have one element, or one per key head");
    }
  }
  out[0] = {node.input(0).dtype, {batch, tokens, dim_mul(state[3], Dim(q_heads))}, nullptr};
  if (out.size() > 1) out[1] = {node.input(node.has_input(3) ? 3 : 0).dtype, state, nullptr};
  return {};
}

Status linear_attention_reference(const NodeView& node, std::span<const TensorView> in,
                                  std::span<const TensorView> out) {
  const TensorView query = in[0], key = in[1], value = in[2];
  const auto given = [&](size_t i) { return in.size() > i && in[i].present(); };
  const int64_t q_heads = node.attr_int("q_num_heads"), heads = node.attr_int("kv_num_heads");
  const int64_t batch = query.dim(0), tokens = query.dim(1), group = q_heads / heads;
  const int64_t dk = query.dim(2) / q_heads, dv = value.dim(2) / heads;
  const double named = node.attr_float("scale"), scale = named != 0 ? named : 1 / std::sqrt(static_cast<double>(dk));
  const double cost = static_cast<double>(tokens * (group + 3)) * static_cast<double>(dk * dv);
  return node.threads().ranges(batch * heads, cost, [&](int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto scratch, Scratch<double>::allocate(saturating_mul(dk, dv) + 2 * dk + 2 * dv, node.label()));
    double *state = scratch.data(), *row = state + dk * dv, *decay = row + dk, *v = decay + dk, *sums = v + dv;
    const auto product = [&](const double* x) {  // sums = state^T x
      std::fill_n(sums, dv, 0.0);
      for (int64_t d = 0; d < dk; ++d) {
        for (int64_t m = 0; m < dv; ++m) sums[m] += x[d] * state[d * dv + m];
      }
    };
    for (int64_t bh = begin; bh < end; ++bh) {
      const int64_t h = bh % heads;
      std::fill_n(state, dk * dv, 0.0);
      if (given(3)) load_line(in[3], bh * dk * dv, 1, dk * dv, state);
      for (int64_t t = 0; t < tokens; ++t) {
        if (loop_stops()) return {};
        const int64_t at = bh / heads * tokens + t;  // of B * T
        if (given(4)) {
          const bool per_row = in[4].dim(2) != heads;
          load_line(in[4], at * in[4].dim(2) + h * (per_row ? dk : 1), per_row ? 1 : 0, dk, decay);
          for (int64_t d = 0; d < dk; ++d) {
            const double factor = std::exp(decay[d]);
            for (int64_t m = 0; m < dv; ++m) state[d * dv + m] *= factor;
          }
        }
        load_line(key, (at * heads + h) * dk, 1, dk, row);
        load_line(value, (at * heads + h) * dv, 1, dv, v);
        if (given(5)) {
          double beta = 0;
          load_line(in[5], at * in[5].dim(2) + (in[5].dim(2) == 1 ? 0 : h), 1, 1, &beta);
          product(row);
          for (int64_t m = 0; m < dv; ++m) v[m] = beta * (v[m] - sums[m]);
        }
        for (int64_t d = 0; d < dk; ++d) {
          for (int64_t m = 0; m < dv; ++m) state[d * dv + m] += row[d] * v[m];
        }
        for (int64_t g = h * group; g < (h + 1) * group; ++g) {
          load_line(query, (at * q_heads + g) * dk, 1, dk, row);
          product(row);
          for (int64_t m = 0; m < dv; ++m) sums[m] *= scale;
          store_line(out[0], (at * q_heads + g) * dv, 1, dv, sums);
        }
      }
      if (out.size() > 1) store_line(out[1], bh * dk * dv, 1, dk * dv, state);
    }
    return {};
  });
}
}  // namespace

PINNACE_OP(linear_attention){
    .name = "linear_attention",
    .inputs = {{"query", kF32 | kF16 | kBF16, 'T'},
               {"key", kF32 | kF16 | kBF16, 'T'},
               {"value", kF32 | kF16 | kBF16, 'T'},
               {"past_state", kF32 | kF16 | kBF16, 0, Arity::kOptional},
               {"decay", kF32 | kF16 | kBF16, 'T', Arity::kOptional},
               {"beta", kF32 | kF16 | kBF16, 'T', Arity::kOptional}},
    .attrs = {int_attr("chunk_size", 64), required_attr("kv_num_heads", AttrKind::kInt),
              required_attr("q_num_heads", AttrKind::kInt), float_attr("scale", 0),
              string_attr("update_rule", "gated_delta")},
    .max_outputs = 2,
    .types = linear_attention_types,
    .reference = linear_attention_reference,
    .work = Work::kPair,
};
}  // namespace pinnace
