// attention: y = softmax(scale * q k^T, soft-capped, plus bias) v per head; groups of query heads may share a key head.
//   q  [B, Hq, Sq, E], or [B, Sq, Hq * E] with q_num_heads    floats
//   k  [B, Hk, Sk, E], or [B, Sk, Hk * E] with kv_num_heads   as q; Hk divides Hq
//   v  [B, Hk, Sk, F], or [B, Sk, Hk * F]                     floats
//   attn_mask  broadcasts to [B, Hq, Sq, S], optional: bool, true takes part; or floats, added. A last dimension
//   shorter than S
//              is filled up with "takes no part". S = P + Sk.
//   past_key [B, Hk, P, E], past_value [B, Hk, P, F]  optional, together: stand before k and v
//   nonpad_kv_seqlen [B]  optional, i64, in [0, Sk], not beside past_key: keys from there on take no part
//   scale float, default 0, which is 1 / sqrt(E); softcap float, default 0 (none): s becomes softcap * tanh(s /
//   softcap) is_causal int, default 0: query i sees key j where j <= i + offset; left_window_size, right_window_size
//   ints, default -1 (none): where i + offset - left <= j <= i + offset + right. offset is P, or nonpad_kv_seqlen - Sq,
//   or 0. q_num_heads, kv_num_heads ints: required for rank 3; softmax_precision string, default "": has no effect
//   qk_matmul_output_mode int, default 0: what output 3 is: scaled scores 0, after softcap 1, after bias 2,
//   probabilities 3 y  as q with F for E                        present_key, present_value [B, Hk, S, E], [B, Hk, S,
//   F], optional qk_matmul_output [B, Hq, Sq, S], optional, as q
// In double throughout, outputs rounded once. A query that sees no key gives zeros. A NaN score makes its query's
// result NaN. Source: ONNX Attention, opset 25.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/lines.h"

namespace pinnace {
namespace {
struct Sizes {
  Dim B, Hq, Hk, Sq, Sk, E, F, P = 0, S;
  bool flat = false;  // rank 3
};

Result<Sizes> sizes_of(const NodeView& node) {
  const TensorType &q = node.input(0), &k = node.input(1), &v = node.input(2);
  if ((q.rank() != 3 && q.rank() != 4) || k.rank() != q.rank() || v.rank() != q.rank()) {
    return node.error("q ", q, ", k ", k, ", v ", v, " must all have rank 3 or all rank 4");
  }
  Sizes s;
  s.flat = q.rank() == 3;
  const int64_t q_heads = node.attr_int("q_num_heads"), kv_heads = node.attr_int("kv_num_heads");
  Dim Ek, Hv, Bk = k.shape[0], Bv = v.shape[0], Sv;
  s.B = q.shape[0];
  if (s.flat) {
    if (q_heads < 1 || kv_heads < 1)
      return node.error("rank 3 needs q_num_heads and kv_num_heads, has ", q_heads, " and ", kv_heads);
    if (std::max(q_heads, kv_heads) > INT32_MAX)
      return node.error("has ", std::max(q_heads, kv_heads), " heads, may have ", INT32_MAX);
    const auto split = [](Dim d, int64_t heads) { return d.known() ? Dim(d.size / heads) : Dim(); };
    if ((q.shape[2].known() && q.shape[2].size % q_heads) || (k.shape[2].known() && k.shape[2].size % kv_heads) ||
        (v.shape[2].known() && v.shape[2].size % kv_heads)) {
      return node.error("q ", q, ", k ", k, ", v ", v, " do not divide into ", q_heads, " and ", kv_heads, " heads");
    }
    s.Hq = q_heads, s.Hk = Hv = kv_heads;
    s.Sq = q.shape[1], s.Sk = k.shape[1], Sv = v.shape[1];
    s.E = split(q.shape[2], q_heads), Ek = split(k.shape[2], kv_heads), s.F = split(v.shape[2], kv_heads);
  } else {
    s.Hq = q.shape[1], s.Hk = k.shape[1], Hv = v.shape[1];
    s.Sq = q.shape[2], s.Sk = k.shape[2], Sv = v.shape[2];
    s.E = q.shape[3], Ek = k.shape[3], s.F = v.shape[3];
    if ((q_heads && differ(s.Hq, q_heads)) || (kv_heads && differ(s.Hk, kv_heads))) {
      return node.error("q_num_heads ", q_heads, " and kv_num_heads ", kv_heads, " are not those of q ", q, " and k ",
                        k);
    }
  }
  if (differ(s.B, Bk) || differ(s.B, Bv) || differ(s.Hk, Hv) || differ(s.Sk, Sv) || differ(s.E, Ek)) {
    return node.error("q ", q, ", k ", k, ", v ", v, " do not agree");
  }
  if (s.Hq.known() && s.Hk.known() && (s.Hk.size == 0 ? s.Hq.size != 0 : s.Hq.size % s.Hk.size != 0)) {
    return node.error(s.Hk.size, " key heads do not divide ", s.Hq.size, " query heads");
  }
  if (node.has_input(4) != node.has_input(5)) return node.error("past_key and past_value must be given together");
  if (node.has_input(4)) {
    const TensorType &pk = node.input(4), &pv = node.input(5);
    if (node.has_input(6)) return node.error("nonpad_kv_seqlen stands beside past_key");
    const Shape key = {s.B, s.Hk, Dim(), s.E}, value = {s.B, s.Hk, pk.rank() == 4 ? pk.shape[2] : Dim(), s.F};
    bool fits = pk.rank() == 4 && pv.rank() == 4;
    for (size_t i = 0; fits && i < 4; ++i) fits = !differ(pk.shape[i], key[i]) && !differ(pv.shape[i], value[i]);
    if (!fits) return node.error("past_key ", pk, " or past_value ", pv, " does not fit k ", k, " and v ", v);
    s.P = pk.shape[2];
  }
  s.S = s.P.known() && s.P.size == 0 ? s.Sk : s.P.known() && s.Sk.known() ? Dim(s.P.size + s.Sk.size) : Dim();
  if (node.has_input(6)) {
    const TensorType& lengths = node.input(6);
    if (lengths.rank() != 1 || differ(lengths.shape[0], s.B))
      return node.error("nonpad_kv_seqlen ", lengths, " must have one element per batch");
  }
  return s;
}

Status attention_types(const NodeView& node, std::span<TensorType> out) {
  PINNACE_ASSIGN(const Sizes s, sizes_of(node));
  const TensorType& q = node.input(0);
  const int64_t mode = node.attr_int("qk_matmul_output_mode");
  if (mode < 0 || mode > 3) return node.error("qk_matmul_output_mode is ", mode, ", must be 0 to 3");
  if (node.attr_int("left_window_size") < -1 || node.attr_int("right_window_size") < -1) {
    return node.error("window sizes ", node.attr_int("left_window_size"), " and ", node.attr_int("right_window_size"),
                      " must be -1 or more");
  }
  if (!(node.attr_float("softcap") >= 0))
    return node.error("softcap is ", node.attr_float("softcap"), ", must be 0 or more");
  if (node.has_input(3)) {
    const TensorType& mask = node.input(3);
    Shape lead = mask.shape;
    bool fits = mask.rank() >= 1 && mask.rank() <= 4;
    if (fits) {
      fits = !(lead.back().known() && s.S.known() && lead.back().size > s.S.size);
      lead.pop_back();
      fits &= broadcasts_to(lead, {s.B, s.Hq, s.Sq});
    }
    if (!fits)
      return node.error("attn_mask ", mask, " does not broadcast to ",
                        TensorType{mask.dtype, {s.B, s.Hq, s.Sq, s.S}, nullptr});
  }
  if (s.flat && s.Hq.known() && s.F.known() && s.F.size > 0 && s.Hq.size > INT64_MAX / s.F.size) {
    return node.error("the result's size, ", s.Hq.size, " heads of ", s.F.size, ", overflows");
  }
  const Dim width = s.Hq.known() && s.F.known() ? Dim(s.Hq.size * s.F.size) : Dim();
  out[0] = {q.dtype, s.flat ? Shape{s.B, s.Sq, width} : Shape{s.B, s.Hq, s.Sq, s.F}, nullptr};
  if (out.size() > 1) out[1] = {q.dtype, {s.B, s.Hk, s.S, s.E}, nullptr};
  if (out.size() > 2) out[2] = {node.input(2).dtype, {s.B, s.Hk, s.S, s.F}, nullptr};
  if (out.size() > 3) out[3] = {q.dtype, {s.B, s.Hq, s.Sq, s.S}, nullptr};
  return {};
}

/// The rows of head (b, h): those of `past`, then those of t, [S, width] in double.
void load_head(const TensorView& past, const TensorView& t, bool flat, int64_t b, int64_t h, int64_t heads, int64_t P,
               int64_t rows, int64_t width, double* to) {
  if (P) load_line(past, (b * heads + h) * P * width, 1, P * width, to);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t first = flat ? ((b * rows + i) * heads + h) * width : ((b * heads + h) * rows + i) * width;
    load_line(t, first, 1, width, to + (P + i) * width);
  }
}

Status attention_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  PINNACE_ASSIGN(const Sizes sizes, sizes_of(node));
  const int64_t B = sizes.B.size, Hq = sizes.Hq.size, Hk = sizes.Hk.size, Sq = sizes.Sq.size, Sk = sizes.Sk.size,
                E = sizes.E.size;
  const int64_t F = sizes.F.size, P = sizes.P.size, S = sizes.S.size;
  const auto given = [&](size_t i) { return i < in.size() && in[i].present(); };
  const double scale = node.attr_float("scale") != 0 ? node.attr_float("scale") : 1 / std::sqrt(static_cast<double>(E));
  const double softcap = node.attr_float("softcap");
  const bool causal = node.attr_int("is_causal") != 0;
  const int64_t left = node.attr_int("left_window_size"), right = node.attr_int("right_window_size");
  const int64_t mode = node.attr_int("qk_matmul_output_mode");
  constexpr double kOut = -std::numeric_limits<double>::infinity();
  // Offsets into the mask by b, h and i; 0 where it broadcasts.
  int64_t mask_step[3] = {}, mask_size = 0;
  if (given(3)) {
    mask_size = in[3].dim(-1);
    int64_t step = mask_size;
    for (int d = in[3].rank() - 2, to = 2; d >= 0; --d, --to) {
      mask_step[to] = in[3].dim(d) == 1 ? 0 : step;
      step *= in[3].dim(d);
    }
  }
  if (given(6)) {
    for (int64_t b = 0; b < B; ++b) {
      const int64_t valid = in[6].data<int64_t>()[b];
      if (valid < 0 || valid > S) {
        return node.error("nonpad_kv_seqlen[", b, "] is ", valid, ", must be in [0, ", S, "]");
      }
    }
  }
  if (std::all_of(out.begin(), out.end(), [](const TensorView& y) { return y.elements() == 0; })) return {};
  const auto load_keys = [&](int64_t head, double* to) {  // head: b * Hk + hk
    load_head(given(4) ? in[4] : TensorView{}, in[1], sizes.flat, head / Hk, head % Hk, Hk, P, Sk, E, to);
  };
  const auto load_values = [&](int64_t head, double* to) {
    load_head(given(5) ? in[5] : TensorView{}, in[2], sizes.flat, head / Hk, head % Hk, Hk, P, Sk, F, to);
  };
  const double load_cost = kMapNanoseconds * static_cast<double>(S * (E + F));
  if (out.size() > 1) {
    PINNACE_TRY(node.threads().ranges(B * Hk, load_cost, [&](int64_t begin, int64_t end) -> Status {
      PINNACE_ASSIGN(auto all, Scratch<double>::allocate(S * std::max(E, F), "attention's keys and values"));
      for (int64_t head = begin; head < end; ++head) {
        load_keys(head, all.data());
        store_line(out[1], head * S * E, 1, S * E, all.data());
        if (out.size() < 3) continue;
        load_values(head, all.data());
        store_line(out[2], head * S * F, 1, S * F, all.data());
      }
      return {};
    }));
  }
  // One line is one row of queries of one head; lines of one head follow each other, and so do heads that share keys.
  const double cost = static_cast<double>(S * (E + F + 20));
  return node.threads().ranges(B * Hq * Sq, cost, [&](int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto k, Scratch<double>::allocate(S * E, "attention's keys"));
    PINNACE_ASSIGN(auto v, Scratch<double>::allocate(S * F, "attention's values"));
    PINNACE_ASSIGN(auto q, Scratch<double>::allocate(E, "attention's query"));
    PINNACE_ASSIGN(auto scores, Scratch<double>::allocate(S, "attention's scores"));
    PINNACE_ASSIGN(auto bias, Scratch<double>::allocate(S, "attention's bias"));
    PINNACE_ASSIGN(auto row, Scratch<double>::allocate(F, "attention's row"));
    int64_t loaded = -1;
    for (int64_t line = begin; line < end; ++line) {
      const int64_t b = line / (Hq * Sq), h = line / Sq % Hq, i = line % Sq;
      const int64_t valid = given(6) ? in[6].data<int64_t>()[b] : S, offset = given(6) ? valid - Sq : P;
      if (const int64_t head = b * Hk + h / (Hq / Hk); head != loaded) {
        load_keys(head, k.data());
        load_values(head, v.data());
        loaded = head;
      }
      load_line(in[0], sizes.flat ? ((b * Sq + i) * Hq + h) * E : ((b * Hq + h) * Sq + i) * E, 1, E, q.data());
      std::fill_n(bias.data(), S, 0.0);
      if (given(3)) {
        load_line(in[3], b * mask_step[0] + h * mask_step[1] + i * mask_step[2], 1, mask_size, bias.data());
        if (in[3].dtype() == DType::kBool) {
          for (int64_t j = 0; j < mask_size; ++j) bias[j] = bias[j] != 0 ? 0 : kOut;
        }
        std::fill(bias.data() + mask_size, bias.data() + S, kOut);
      }
      bool sees_any = false;
      for (int64_t j = 0; j < S; ++j) {
        const int64_t ahead = j - (i + offset);
        if (j >= valid || (causal && ahead > 0) || (left >= 0 && -ahead > left) || (right >= 0 && ahead > right))
          bias[j] = kOut;
        sees_any |= bias[j] != kOut;
      }
      const auto show = [&](int64_t which) {
        if (mode == which && out.size() > 3) store_line(out[3], ((b * Hq + h) * Sq + i) * S, 1, S, scores.data());
      };
      for (int64_t j = 0; j < S; ++j) {
        double sum = 0;
        for (int64_t e = 0; e < E; ++e) sum += q[e] * k[j * E + e];
        scores[j] = sum * scale;
      }
      show(0);
      if (softcap > 0) {
        for (double& s : scores.span()) s = softcap * std::tanh(s / softcap);
      }
      show(1);
      for (int64_t j = 0; j < S; ++j) scores[j] = bias[j] == kOut ? kOut : scores[j] + bias[j];
      show(2);
      if (sees_any) {
        double largest = kOut, sum = 0;
        for (double s : scores.span()) largest = s > largest ? s : largest;
        if (largest == kOut) largest = 0;  // every score is -inf or NaN by itself
        for (double& s : scores.span()) sum += s = std::exp(s - largest);
        for (double& s : scores.span()) s = sum == 0 ? 0 : s / sum;
      } else {
        std::fill_n(scores.data(), S, 0.0);
      }
      show(3);
      std::fill_n(row.data(), F, 0.0);
      for (int64_t j = 0; j < S; ++j) {
        if (scores[j] == 0) continue;  // a key that takes no part may hold anything
        for (int64_t f = 0; f < F; ++f) row[f] += scores[j] * v[j * F + f];
      }
      const int64_t at = sizes.flat ? ((b * Sq + i) * Hq + h) * F : ((b * Hq + h) * Sq + i) * F;
      store_line(out[0], at, 1, F, row.data());
    }
    return {};
  });
}

/// Every query meets every key, masked ones too: q has an element for each factor of its scores, y a sum for each of a
/// value's.
double attention_multiply_adds(std::span<const TensorType* const> inputs, const TensorType& y) {
  const auto length = [&](size_t i) {
    if (i >= inputs.size() || inputs[i] == nullptr || inputs[i]->rank() < 2) return 0.0;
    const Dim& keys = inputs[i]->shape[static_cast<size_t>(inputs[i]->rank()) - 2];
    return keys.known() ? static_cast<double>(keys.size) : 1.0;
  };
  return (elements_if_known(*inputs[0]) + elements_if_known(y)) * (length(1) + length(4));
}
}  // namespace

PINNACE_OP(attention){
    .name = "attention",
    .inputs = {{"q", kFloats, 'T'},
               {"k", kFloats, 'T'},
               {"v", kFloats, 'V'},
               {"attn_mask", kFloats | kBool, 0, Arity::kOptional},
               {"past_key", kFloats, 'T', Arity::kOptional},
               {"past_value", kFloats, 'V', Arity::kOptional},
               {"nonpad_kv_seqlen", kI64, 0, Arity::kOptional}},
    .attrs = {int_attr("is_causal", 0), int_attr("kv_num_heads", 0), int_attr("left_window_size", -1),
              int_attr("q_num_heads", 0), int_attr("qk_matmul_output_mode", 0), int_attr("right_window_size", -1),
              float_attr("scale", 0), float_attr("softcap", 0), string_attr("softmax_precision", "")},
    .max_outputs = 4,
    .types = attention_types,
    .reference = attention_reference,
    .work = Work::kPair,
    .multiply_adds = attention_multiply_adds,
};
}  // namespace pinnace
