// fuse_attention: softmax(scale * q k^T + mask) v becomes attention. q and k may be scaled before the product or the
// scores after it, by constant factors; k^T may be a transpose of k or of what k is transposed from; masks are added,
// or chosen with where(mask, scores, -inf). PyTorch's decomposition, which replaces rows without any finite score by
// zeros, is taken whole. Conditions: floats; rank 4 with equal batches and heads (rank 3 counts as one head); softmax
// over the last dimension; the mask broadcasts to the scores without enlarging them; inner values are read nowhere else
// and leave nowhere. Bound: the roundings of the nodes that vanish. A query none of whose keys takes part gives zeros,
// where softmax alone would give NaN.
#include <algorithm>
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

/// Follows constant factors back from `id`, which must be read once.
ValueId skip_scale(const Rewrite& rewrite, ValueId id, double& scale, std::vector<Node*>& nodes) {
  const Product product = product_of(rewrite, id);
  if (product.terms.size() != 1 || product.nodes.empty()) return id;
  scale *= product.factor;
  nodes.insert(nodes.end(), product.nodes.begin(), product.nodes.end());
  return product.terms[0];
}

bool is_zero(const Rewrite& rewrite, ValueId id) {
  const auto numbers = rewrite.numbers(id);
  return numbers && std::all_of(numbers->begin(), numbers->end(), [](double x) { return x == 0; });
}

/// A reduction of the last dimension that keeps it, over values of that rank.
bool reduces_last(const Rewrite& rewrite, const Node& node, int rank) {
  if (node.inputs.size() != 2 || int_or(node, "keepdims", 1) != 1) return false;
  const auto axes = rewrite.numbers(node.inputs[1]);
  return rewrite.type(node.inputs[0]).rank() == rank && axes && axes->size() == 1 &&
         (axes->front() == -1 || axes->front() == rank - 1);
}

/// True if `id` says of each row of `scores` whether all of it is -inf; appends the nodes that say so. They may be
/// logical nodes, casts, the sum of bools that is greater than 0, and one smallest or largest element of a row.
bool says_all_masked(const Rewrite& rewrite, ValueId id, ValueId scores, std::vector<Node*>& nodes) {
  constexpr int kDepth = 8;  // longer than all forms of interest
  const TensorType& type = rewrite.type(scores);
  // What `id` has to be, read back from the result: whether all of a row is masked, later whether an element is, or the
  // opposite of that.
  bool opposite = false, reduced = false;
  for (int i = 0; i < kDepth; ++i) {
    Node* node = rewrite.producer(id);
    if (!node || node->inputs.empty() || node->outputs.size() != 1 || node->attr("activation")) return false;
    nodes.push_back(node);
    if (node->op == "equal") {
      const bool found = either_order(*node, [&](ValueId a, ValueId b) {
        return a == scores && rewrite.scalar(b) == -std::numeric_limits<double>::infinity();
      });
      return found && reduced && !opposite && rewrite.type(id).shape == type.shape;
    }
    bool any = node->op == "reduce_max";
    if (node->op == "greater") {
      Node* sum = rewrite.producer(node->inputs[0], "reduce_sum");
      if (!sum || rewrite.type(node->inputs[0]).dtype != DType::kI32 || !is_zero(rewrite, node->inputs[1]))
        return false;
      nodes.push_back(node = sum);
      any = true;
    }
    if (any || node->op == "reduce_min") {
      // All of a row is masked: the smallest is, or not even the largest is not.
      if (reduced || any != opposite || !reduces_last(rewrite, *node, type.rank())) return false;
      reduced = true;
    } else if (node->op == "not") {
      opposite = !opposite;
    } else if (node->op != "cast" && node->op != "identity") {
      return false;
    }
    id = node->inputs[0];
  }
  return false;
}

/// where(all of the row's scores are -inf, 0, probabilities), as PyTorch decomposes its softmax over masked scores:
/// gives probabilities and lists the nodes; other values are given back.
ValueId skip_safe(const Rewrite& rewrite, ValueId id, std::vector<Node*>& nodes) {
  Node* where = rewrite.producer(id, "where");
  if (!where || where->inputs.size() != 3) return id;
  const ValueId probabilities = where->inputs[2];
  Node* softmax = rewrite.producer(probabilities, "softmax");
  if (!softmax || !is_zero(rewrite, where->inputs[1]) || !(rewrite.type(id) == rewrite.type(probabilities))) return id;
  std::vector<Node*> found = {where};
  if (!says_all_masked(rewrite, where->inputs[0], softmax->inputs[0], found)) return id;
  nodes.insert(nodes.end(), found.begin(), found.end());
  return probabilities;
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
  // Kernels multiply by a float32: factors whose product that cannot hold stay apart.
  if (!m.transpose || !(m.scale >= static_cast<double>(std::numeric_limits<float>::min())) ||
      !(m.scale <= static_cast<double>(std::numeric_limits<float>::max()))) {
    return std::nullopt;
  }
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
