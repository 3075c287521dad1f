// fuse_attention: softmax(scale * q k^T + mask) v becomes attention. q and k may be scaled before the product or the
// scores after it, by constant factors; k^T may be a transpose of k or of what k is transposed from; masks are added,
// or chosen with where(mask, scores, -inf). PyTorch's decomposition, which replaces rows without any finite score by
// zeros, is taken whole. Conditions: floats; rank 4 with equal batches and heads (rank 3 counts as one head); softmax
// over the last dimension; the mask broadcasts to the scores without enlarging them; inner values are read nowhere else
// and leave nowhere. Bound: the roundings of the nodes that vanish. A query none of whose keys takes part gives zeros,
// where softmax alone would give NaN.
#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/rewrite.h"

namespace pinnace {
namespace {

/// What was found of the formula so far; nodes are listed from the result back.
struct Match {
  ValueId q = kNoValue, k = kNoValue, v = kNoValue, mask = kNoValue;
  double scale = 1;
  Node* transpose = nullptr;  ///< makes k^T
  std::vector<Node*> nodes;
};

bool equal_dim(Dim a, Dim b) {
  return a == b && (a.known() || a.symbol >= 0);
}

/// Follows constant factors back from `id`, which must be read once.
ValueId skip_scale(const Rewrite& rewrite, ValueId id, double& scale, std::vector<Node*>& nodes) {
  const Product product = product_of(rewrite, id);
  if (product.terms.size() != 1 || product.nodes.empty()) return id;
  scale *= product.factor;
  nodes.insert(nodes.end(), product.nodes.begin(), product.nodes.end());
  return product.terms[0];
}

/// where(not any(not (scores == -inf)), 0, probabilities), as PyTorch decomposes its softmax over masked scores: gives
/// probabilities and lists the nodes; other values are given back.
ValueId skip_safe(const Rewrite& rewrite, ValueId id, std::vector<Node*>& nodes) {
  Node* where = rewrite.producer(id, "where");
  if (!where || where->inputs.size() != 3) return id;
  const auto zeros = rewrite.numbers(where->inputs[1]);
  bool all_zero = zeros.has_value();
  for (size_t i = 0; all_zero && i < zeros->size(); ++i) all_zero = (*zeros)[i] == 0;
  Node* softmax = rewrite.producer(where->inputs[2], "softmax");
  if (!all_zero || !softmax) return id;
  // Any chain of logical nodes, casts and reductions that comes from scores == -inf.
  std::vector<Node*> chain = {where};
  ValueId at = where->inputs[0];
  for (int i = 0; i < 8; ++i) {
    Node* node = rewrite.producer(at);
    if (!node || node->inputs.empty()) return id;
    chain.push_back(node);
    if (node->op == "equal") {
      if (node->inputs[0] != softmax->inputs[0]) return id;
      if (rewrite.scalar(node->inputs[1]) != -std::numeric_limits<double>::infinity()) return id;
      nodes.insert(nodes.end(), chain.begin(), chain.end());
      return where->inputs[2];
    }
    bool known = false;
    for (std::string_view op : {"not", "cast", "reduce_max", "reduce_min", "identity"}) known |= node->op == op;
    if (!known) return id;
    at = node->inputs[0];
  }
  return id;
}

bool match_mask(const Rewrite& rewrite, ValueId& scores, Match& m) {
  Node* node = rewrite.producer(scores);
  if (!node || node->attr("activation")) return false;
  ValueId mask = kNoValue, rest = kNoValue;
  if (node->op == "where" && node->inputs.size() == 3) {
    const auto fill = rewrite.scalar(node->inputs[2]);
    if (!fill || *fill != -std::numeric_limits<double>::infinity()) return false;
    mask = node->inputs[0];
    rest = node->inputs[1];
  } else if (node->op == "add" && node->inputs.size() == 2) {
    either_order(*node, [&](ValueId a, ValueId b) {
      rest = a;
      mask = b;
      double scale = 1;
      std::vector<Node*> ignored;
      return rewrite.producer(skip_scale(rewrite, a, scale, ignored), "mat_mul") != nullptr;
    });
  }
  if (mask == kNoValue || rewrite.type(rest).shape != rewrite.type(scores).shape) return false;
  m.mask = mask;
  m.nodes.push_back(node);
  scores = rest;
  return true;
}

std::optional<Match> match(const Rewrite& rewrite, const Node& last) {
  if (last.op != "mat_mul" || last.inputs.size() != 2 || last.outputs.size() != 1 || last.attr("activation"))
    return std::nullopt;
  Match m;
  m.v = last.inputs[1];
  const ValueId probabilities = skip_safe(rewrite, last.inputs[0], m.nodes);
  Node* softmax = rewrite.producer(probabilities, "softmax");
  if (!softmax) return std::nullopt;
  const int rank = rewrite.type(probabilities).rank();
  const int64_t axis = int_or(*softmax, "axis", -1);
  if ((axis != -1 && axis != rank - 1) || (rank != 4 && rank != 3)) return std::nullopt;
  m.nodes.push_back(softmax);
  ValueId scores = softmax->inputs[0];
  match_mask(rewrite, scores, m);
  scores = skip_scale(rewrite, scores, m.scale, m.nodes);
  Node* product = rewrite.producer(scores, "mat_mul");
  if (!product || product->inputs.size() != 2 || product->attr("activation")) return std::nullopt;
  m.nodes.push_back(product);
  m.q = skip_scale(rewrite, product->inputs[0], m.scale, m.nodes);
  const ValueId kt = skip_scale(rewrite, product->inputs[1], m.scale, m.nodes);
  m.transpose = rewrite.producer(kt, "transpose");
  if (!m.transpose || !(m.scale > 0) || !std::isfinite(m.scale)) return std::nullopt;
  return m;
}

Result<bool> fuse(Rewrite& rewrite, Node& last) {
  auto found = match(rewrite, last);
  if (!found) return false;
  Match& m = *found;
  const TensorType q = rewrite.type(m.q), v = rewrite.type(m.v), kt = rewrite.type(m.transpose->outputs[0]);
  const auto rank = static_cast<size_t>(q.rank());
  if (!is_float_type(q.dtype) || (rank != 3 && rank != 4) || v.shape.size() != rank || kt.shape.size() != rank)
    return false;
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (!equal_dim(q.shape[i], kt.shape[i]) || !equal_dim(q.shape[i], v.shape[i])) return false;
  }
  if (!equal_dim(q.shape[rank - 1], kt.shape[rank - 2]) || !equal_dim(kt.shape[rank - 1], v.shape[rank - 2]))
    return false;
  if (m.mask != kNoValue) {
    const TensorType& mask = rewrite.type(m.mask);
    if (mask.dtype != DType::kBool && mask.dtype != q.dtype) return false;
    if (mask.shape.size() > (rank == 4 ? 4u : 2u) || mask.shape.empty()) return false;
    // A last dimension of 1 would mean "one key" to attention, not "all".
    if (!equal_dim(mask.shape.back(), kt.shape[rank - 1])) return false;
  }
  const auto perm = ints_or_empty(*m.transpose, "perm");
  if (perm.size() != rank || !rewrite.closed(m.nodes, &last)) return false;
  // k = k^T with its last two dimensions exchanged again.
  std::vector<int64_t> back(perm.begin(), perm.end());
  std::swap(back[rank - 1], back[rank - 2]);
  const bool same = std::is_sorted(back.begin(), back.end());
  m.k = m.transpose->inputs[0];
  const ValueId kt_id = m.transpose->outputs[0];
  if (!same) {
    TensorType k = kt;
    std::swap(k.shape[rank - 1], k.shape[rank - 2]);
    m.k = rewrite.insert_before(*m.transpose, "transpose", {m.k}, {{"perm", back}}, k,
                                rewrite.graph().value(kt_id).name + ".keys");
  }
  decltype(Node::attrs) attrs;
  if (rank == 3) attrs = {{"kv_num_heads", int64_t{1}}, {"q_num_heads", int64_t{1}}};
  attrs.emplace_back("scale", m.scale);
  const SourceLocation source = last.source;
  rewrite.replace(last, "attention", {m.q, m.k, m.v, m.mask}, std::move(attrs), source);
  rewrite.remove(m.nodes);
  if (rewrite.reader_count(kt_id) == 0 && !rewrite.leaves(kt_id)) rewrite.remove(*m.transpose);
  return true;
}

Result<int> run(Graph& graph, const PassContext& context) {
  Rewrite rewrite(graph, context);
  for (Node* node : rewrite.nodes()) {
    if (rewrite.alive(node)) PINNACE_TRY(fuse(rewrite, *node).status());
  }
  return rewrite.finish();
}

}  // namespace

extern const PassDef fuse_attention_pass;
const PassDef fuse_attention_pass{"fuse_attention", "finds attention in its formula", 1e-5, run};

}  // namespace pinnace
