// lower_einsum: an einsum of one or two operands becomes a mat_mul, or a mul where nothing is summed over both, of
// operands that were transposed to fit, so that kernels and back ends that have products run it. Letters that one
// operand alone has and the result has not are summed first. Conditions: floats; no letter stands twice in a term; of
// letters in both operands, sizes are the same or 1 where the result keeps the letter, and the same where it is summed;
// where several letters are summed over both, their sizes are known and at most one other size is not; what is summed
// first has elements, and is f32 or f64, since an einsum rounds once. Bound: the rounding of what is summed first,
// which may also be infinite where the products would not be. Kernels of products sum in their type, an einsum in
// double.
#include <algorithm>

#include "ops/einsum.h"
#include "passes/rewrite.h"

namespace pinnace {
namespace {

using Labels = std::vector<int>;

bool has(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

Labels operator+(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// A stand-in for a letter that an operand has not: a dimension of size 1.
constexpr int kOne = 0;

/// A value whose dimensions have labels, and nodes before `node` that rearrange it.
class Operand {
 public:
  Operand(Rewrite& rewrite, Node& node, ValueId id, Labels labels)
      : rewrite_(&rewrite), node_(&node), id_(id), labels_(std::move(labels)) {}

  ValueId id() const { return id_; }
  const Labels& labels() const { return labels_; }
  const TensorType& type() const { return rewrite_->type(id_); }
  Dim size_of(int label) const {
    return type().shape[static_cast<size_t>(std::find(labels_.begin(), labels_.end(), label) - labels_.begin())];
  }

  /// Another value with other labels takes its place.
  void become(std::string_view op, std::vector<ValueId> inputs, decltype(Node::attrs) attrs, Shape shape,
              Labels labels) {
    const DType dtype = type().dtype;
    id_ = rewrite_->insert_before(*node_, op, std::move(inputs), std::move(attrs), {dtype, std::move(shape), nullptr},
                                  str_cat(node_->name, ".", op));
    labels_ = std::move(labels);
  }

  Status sum_over(const Labels& gone) {
    std::vector<double> axes;
    Shape shape;
    Labels left;
    for (size_t d = 0; d < labels_.size(); ++d) {
      if (has(gone, labels_[d])) {
        axes.push_back(static_cast<double>(d));
      } else {
        shape.push_back(type().shape[d]);
        left.push_back(labels_[d]);
      }
    }
    if (axes.empty()) return {};
    PINNACE_ASSIGN(const ValueId list, numbers(axes));
    become("reduce_sum", {id_, list}, {{"keepdims", Attr(int64_t{0})}}, std::move(shape), std::move(left));
    return {};
  }

  /// Transposes it to the order of `wanted` and puts a size of 1 where `wanted` has what it has not.
  Status arrange(const Labels& wanted) {
    Labels order;
    std::vector<int64_t> perm;
    Shape shape;
    std::vector<double> added;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const auto at = std::find(labels_.begin(), labels_.end(), wanted[i]) - labels_.begin();
      if (wanted[i] == kOne || static_cast<size_t>(at) == labels_.size()) {
        added.push_back(static_cast<double>(i));
        continue;
      }
      order.push_back(wanted[i]);
      perm.push_back(at);
      shape.push_back(type().shape[static_cast<size_t>(at)]);
    }
    if (!std::is_sorted(perm.begin(), perm.end())) become("transpose", {id_}, {{"perm", perm}}, shape, order);
    if (added.empty()) return {};
    PINNACE_ASSIGN(const ValueId list, numbers(added));
    for (const double at : added) shape.insert(shape.begin() + static_cast<ptrdiff_t>(at), Dim(1));
    become("unsqueeze", {id_, list}, {}, std::move(shape), wanted);
    return {};
  }

  /// Makes one dimension with the label of the first of those at [begin, begin + count), whose sizes are known; at most
  /// one other size is not.
  Status join(size_t begin, size_t count) {
    int64_t size = 1;
    Shape shape;
    std::vector<double> sizes;
    Labels left;
    for (size_t d = 0; d < labels_.size(); ++d) {
      const Dim dim = type().shape[d];
      if (d >= begin && d < begin + count) {
        size *= dim.size;
        if (d + 1 < begin + count) continue;
        shape.push_back(Dim(size));
        sizes.push_back(static_cast<double>(size));
        left.push_back(labels_[begin]);
      } else {
        shape.push_back(dim);
        sizes.push_back(dim.known() ? static_cast<double>(dim.size) : -1);
        left.push_back(labels_[d]);
      }
    }
    PINNACE_ASSIGN(const ValueId list, numbers(sizes));
    become("reshape", {id_, list}, {}, std::move(shape), std::move(left));
    return {};
  }

  Status squeeze(const Labels& wanted) {
    if (wanted.size() == labels_.size()) return {};
    std::vector<double> axes;
    Shape shape;
    for (size_t d = 0; d < labels_.size(); ++d) {
      if (labels_[d] == kOne) {
        axes.push_back(static_cast<double>(d));
      } else {
        shape.push_back(type().shape[d]);
      }
    }
    PINNACE_ASSIGN(const ValueId list, numbers(axes));
    become("squeeze", {id_, list}, {}, std::move(shape), wanted);
    return {};
  }

 private:
  Result<ValueId> numbers(std::span<const double> list) {
    return rewrite_->add_constant(str_cat(node_->name, ".axes"), DType::kI64, {static_cast<int64_t>(list.size())},
                                  list);
  }

  Rewrite* rewrite_;
  Node* node_;
  ValueId id_;
  Labels labels_;
};

/// Where the letters of two operands stand.
struct Roles {
  Labels batch;       ///< in both and in the result
  Labels summed;      ///< in both alone
  Labels rows, cols;  ///< in a and the result, in b and the result
};

Roles roles_of(const Labels& a, const Labels& b, const Labels& out) {
  Roles r;
  for (const int label : out) (has(a, label) ? has(b, label) ? r.batch : r.rows : r.cols).push_back(label);
  for (const int label : a) {
    if (has(b, label) && !has(out, label)) r.summed.push_back(label);
  }
  return r;
}

/// Whether a reshape can join the summed letters.
bool can_join(const Operand& x, const Labels& summed) {
  constexpr int64_t kMost = int64_t{1} << 40;  // more than memory holds; sizes may be any numbers
  int64_t joined = 1;
  int unknown = 0;
  for (size_t d = 0; d < x.labels().size(); ++d) {
    const Dim size = x.type().shape[d];
    if (size.size == 0) return false;  // a reshape to 0 copies a size
    if (has(summed, x.labels()[d])) {
      if (!size.known() || size.size > kMost / joined) return false;
      joined *= size.size;
    } else {
      unknown += !size.known();
    }
  }
  return unknown <= 1;
}

/// The product of both, with the labels of `out` in some order.
Result<Operand> product(const EinsumEquation& e, Operand a, Operand b) {
  Roles r = roles_of(a.labels(), b.labels(), e.out);
  if (r.summed.empty()) {
    PINNACE_TRY(a.arrange(e.out));
    PINNACE_TRY(b.arrange(e.out));
    Shape shape;
    for (const int label : e.out) shape.push_back(e.size_of(label));
    Operand y = a;
    y.become("mul", {a.id(), b.id()}, {}, std::move(shape), e.out);
    return y;
  }
  // The last letter of the result is a column, so that the product is in its order.
  if (!r.rows.empty() && !r.cols.empty() && has(r.rows, e.out.back())) {
    std::swap(a, b);
    std::swap(r.rows, r.cols);
  }
  const int row = r.rows.empty() ? kOne : r.rows.back(), col = r.cols.empty() ? kOne : r.cols.back();
  Labels outer;
  for (const int label : e.out) {
    if (label != row && label != col) outer.push_back(label);
  }
  const auto outer_of = [&](const Operand& x) {
    // Leading dimensions that it has not are those of size 1 that a product adds.
    const auto first = std::find_if(outer.begin(), outer.end(), [&](int label) { return has(x.labels(), label); });
    return Labels(first, outer.end());
  };
  const Labels a_outer = outer_of(a), b_outer = outer_of(b);
  PINNACE_TRY(a.arrange(a_outer + Labels{row} + r.summed));
  PINNACE_TRY(b.arrange(b_outer + r.summed + Labels{col}));
  if (r.summed.size() > 1) {
    PINNACE_TRY(a.join(a_outer.size() + 1, r.summed.size()));
    PINNACE_TRY(b.join(b_outer.size(), r.summed.size()));
  }
  Shape shape;
  for (const int label : outer + Labels{row, col}) shape.push_back(label == kOne ? Dim(1) : e.size_of(label));
  Operand y = a;
  y.become("mat_mul", {a.id(), b.id()}, {}, std::move(shape), outer + Labels{row, col});
  Labels kept = outer;
  for (const int label : {row, col}) {
    if (label != kOne) kept.push_back(label);
  }
  PINNACE_TRY(y.squeeze(kept));
  return y;
}

/// Letters of `term` that neither `other` nor the result has.
Labels alone(const Labels& term, const Labels& other, const Labels& out) {
  Labels found;
  for (const int label : term) {
    if (!has(other, label) && !has(out, label)) found.push_back(label);
  }
  return found;
}

bool fits(const EinsumEquation& e, const std::vector<Operand>& x, std::span<const Symbol> symbols) {
  const DType dtype = x[0].type().dtype;
  const bool wide = dtype == DType::kF32 || dtype == DType::kF64;
  if (!is_float_type(dtype)) return false;
  for (size_t i = 0; i < x.size(); ++i) {
    const Labels& term = x[i].labels();
    for (const int label : term) {
      if (std::count(term.begin(), term.end(), label) > 1) return false;
    }
    // The sum of nothing is 0, and stays 0 in an einsum whatever it is multiplied with.
    const auto has_elements = [&](int label) {
      const Dim size = x[i].size_of(label);
      const auto symbol = static_cast<size_t>(size.symbol);
      if (size.known()) return size.size > 0;
      return size.symbol >= 0 && symbol < symbols.size() && symbols[symbol].min > 0;  // a body's are the outer graph's
    };
    const Labels summed = alone(term, x.size() > 1 ? x[1 - i].labels() : Labels(), e.out);
    if (!summed.empty() && !wide) return false;
    if (x.size() > 1 && !std::all_of(summed.begin(), summed.end(), has_elements)) return false;
  }
  if (x.size() == 1) return true;
  Labels summed;
  for (const int label : x[0].labels()) {
    if (!has(x[1].labels(), label)) continue;
    const Dim a = x[0].size_of(label), b = x[1].size_of(label);
    const bool kept = has(e.out, label);
    if (!equal_dim(a, b) && !(kept && (a.size == 1 || b.size == 1))) return false;
    if (!kept) summed.push_back(label);
  }
  return summed.size() < 2 || (can_join(x[0], summed) && can_join(x[1], summed));
}

/// The node becomes the last one that was made for it, so that its name stays that of the result.
void finish(Rewrite& rewrite, Node& node, const Operand& y) {
  const SourceLocation source = node.source;
  if (std::find(node.inputs.begin(), node.inputs.end(), y.id()) != node.inputs.end()) {
    return rewrite.replace(node, "identity", {y.id()}, {}, source);
  }
  Node& last = *rewrite.producer(y.id());
  rewrite.replace(node, last.op, last.inputs, last.attrs, source);
  rewrite.remove(last);
}

Result<int> run(Graph& graph, const PassContext& context) {
  Rewrite rewrite(graph, context);
  for (Node* node : rewrite.nodes()) {
    if (!rewrite.alive(node) || node->op != "einsum" || node->inputs.size() > 2) continue;
    std::vector<const TensorType*> types;
    for (const ValueId id : node->inputs) types.push_back(&rewrite.type(id));
    PINNACE_ASSIGN(const EinsumEquation e, parse_einsum(NodeView(*node, rewrite.op(*node), types)));
    std::vector<Operand> x;
    for (size_t i = 0; i < node->inputs.size(); ++i) x.emplace_back(rewrite, *node, node->inputs[i], e.terms[i]);
    if (!fits(e, x, graph.symbols)) continue;
    for (size_t i = 0; i < x.size(); ++i) {
      PINNACE_TRY(x[i].sum_over(alone(x[i].labels(), x.size() > 1 ? x[1 - i].labels() : Labels(), e.out)));
    }
    Operand y = x[0];
    if (x.size() == 2) {
      PINNACE_ASSIGN(y, product(e, x[0], x[1]));
    }
    PINNACE_TRY(y.arrange(e.out));
    finish(rewrite, *node, y);
  }
  return rewrite.finish();
}

}  // namespace

extern const PassDef lower_einsum_pass;
const PassDef lower_einsum_pass{"lower_einsum", "makes products of matrices of einsum", 1e-5, run};

}  // namespace pinnace
