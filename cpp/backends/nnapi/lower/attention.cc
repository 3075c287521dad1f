// attention as two products of batches and a softmax.
#include <cmath>

#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/floats.h"
#include "backends/nnapi/steps/shape.h"

namespace pinnace::nnapi_client {
namespace {

/// [B, S, H * E] as [B, H, S, E].
Result<OperandId> heads_apart(NodeLowering& n, OperandId x, uint32_t heads) {
  const std::vector<uint32_t> d = n.operand(x).dims;
  if (d.size() == 4) return x;
  const int32_t turn[] = {0, 2, 1, 3};
  PINNACE_ASSIGN(const OperandId apart, reshaped(n, x, {d[0], d[1], heads, d[2] / heads}));
  return transposed(n, apart, turn);
}

}  // namespace

Status lower_attention(NodeLowering& n) {
  const NodeView& view = n.view();
  if (view.output_count() > 1) return n.refuse(Rule::kAttribute, "more than one output");
  for (int i : {4, 5, 6}) {
    if (n.has(i)) return n.refuse(Rule::kAttribute, "keys of the past");
  }
  if (view.attr_int("is_causal") != 0 || view.attr_int("left_window_size") >= 0 ||
      view.attr_int("right_window_size") >= 0 || view.attr_float("softcap") != 0) {
    return n.refuse(Rule::kAttribute, "causal, windowed or capped");
  }
  const bool has_mask = n.has(3);
  if (has_mask && n.in_type(3).dtype != n.in_type(0).dtype) return n.refuse(Rule::kType, to_string(n.in_type(3)));
  PINNACE_ASSIGN(OperandId q, n.in(0));
  PINNACE_ASSIGN(OperandId k, n.in(1));
  PINNACE_ASSIGN(OperandId v, n.in(2));
  PINNACE_ASSIGN(const OperandId y, n.out());
  PINNACE_ASSIGN(q, heads_apart(n, q, static_cast<uint32_t>(view.attr_int("q_num_heads"))));
  PINNACE_ASSIGN(k, heads_apart(n, k, static_cast<uint32_t>(view.attr_int("kv_num_heads"))));
  PINNACE_ASSIGN(v, heads_apart(n, v, static_cast<uint32_t>(view.attr_int("kv_num_heads"))));
  const std::vector<uint32_t> dq = n.operand(q).dims, dk = n.operand(k).dims, dv = n.operand(v).dims;
  if (dq[1] != dk[1]) return n.refuse(Rule::kBroadcast, str_cat(dq[1], " heads by ", dk[1]));
  if (has_mask && n.in_type(3).shape.back().size != static_cast<int64_t>(dk[2])) {
    return n.refuse(Rule::kBroadcast, to_string(n.in_type(3)));
  }
  n.rewritten("products of batches and a softmax");
  const double given = view.attr_float("scale"),
               scale = given != 0 ? given : 1 / std::sqrt(double{static_cast<double>(dq[3])});
  const int32_t turn[] = {0, 1, 3, 2};
  PINNACE_ASSIGN(const OperandId keys, transposed(n, k, turn));
  const OperandId scaled = n.temp(q), products = n.temp(q, {dq[0], dq[1], dq[2], dk[2]});
  PINNACE_TRY(n.add(Op::MUL, {q, n.number(scale, q), n.scalar(0)}, scaled));
  PINNACE_TRY(batch_mat_mul(n, scaled, keys, products));
  OperandId scores = products;
  if (has_mask) {
    PINNACE_ASSIGN(const OperandId mask, n.in(3));
    scores = n.temp(products);
    PINNACE_TRY(n.add(Op::ADD, {products, mask, n.scalar(0)}, scores));
  }
  const uint32_t rows = dq[0] * dq[1] * dq[2];
  PINNACE_ASSIGN(const OperandId lines, reshaped(n, scores, {rows, dk[2]}));
  const OperandId weights = n.temp(lines);
  PINNACE_TRY(n.add(Op::SOFTMAX, {lines, n.real(1, n.in_type(0))}, weights));
  PINNACE_ASSIGN(const OperandId apart, reshaped(n, weights, {dq[0], dq[1], dq[2], dk[2]}));
  if (n.operand(y).dims.size() == 4) return batch_mat_mul(n, apart, v, y);
  const OperandId made = n.temp(y, {dq[0], dq[1], dq[2], dv[3]});
  PINNACE_TRY(batch_mat_mul(n, apart, v, made));
  const int32_t back[] = {0, 2, 1, 3};
  PINNACE_ASSIGN(const OperandId together, transposed(n, made, back));
  return reshape_into(n, together, y);
}

}  // namespace pinnace::nnapi_client
