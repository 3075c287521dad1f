// cancel_transposes: a transpose of a transpose becomes one transpose of the value before, or nothing where the two
// undo each other. The first one stays only if somebody else reads it. A transpose that moves only dimensions of size 1
// becomes a reshape, which moves no bytes and merges with others. No arithmetic changes.
#include <numeric>

#include "passes/rewrite.h"

namespace pinnace {
namespace {

/// The permutation, with the default (reversal) filled in.
std::vector<int64_t> permutation(const Rewrite& rewrite, const Node& node) {
  const auto perm = ints_or_empty(node, "perm");
  std::vector<int64_t> result(perm.begin(), perm.end());
  const int rank = rewrite.type(node.inputs[0]).rank();
  for (int i = rank; perm.empty() && i-- > 0;) result.push_back(i);
  for (int64_t& p : result) p = p < 0 ? p + rank : p;
  return result;
}

/// True if the order of the dimensions that are not 1 stays.
bool keeps_order(const Rewrite& rewrite, const Node& node) {
  const Shape& x = rewrite.type(node.inputs[0]).shape;
  int64_t before = -1;
  for (int64_t p : permutation(rewrite, node)) {
    if (x[static_cast<size_t>(p)].size == 1) continue;
    if (p < before) return false;
    before = p;
  }
  return true;
}

/// Turns the node into a reshape if all sizes but one are known.
Result<bool> as_reshape(Rewrite& rewrite, Node& node) {
  const TensorType& y = rewrite.type(node.outputs[0]);
  if (y.quantized() || !keeps_order(rewrite, node)) return false;
  std::vector<double> sizes;
  int unknown = 0;
  for (const Dim& d : y.shape) {
    if (d.size == 0) return false;
    unknown += !d.known();
    sizes.push_back(d.known() ? static_cast<double>(d.size) : -1);
  }
  if (unknown > 1 || sizes.empty()) return false;
  PINNACE_ASSIGN(const ValueId shape, rewrite.add_constant(rewrite.graph().value(node.outputs[0]).name + ".shape",
                                                           DType::kI64, {static_cast<int64_t>(sizes.size())}, sizes));
  const SourceLocation source = node.source;
  rewrite.replace(node, "reshape", {node.inputs[0], shape}, {}, source);
  return true;
}

Result<int> run(Graph& graph, const PassContext& context) {
  Rewrite rewrite(graph, context);
  for (Node* node : rewrite.nodes()) {
    if (!rewrite.alive(node) || node->op != "transpose") continue;
    Node* first = rewrite.producer(node->inputs[0], "transpose");
    if (!first) {
      PINNACE_TRY(as_reshape(rewrite, *node).status());
      continue;
    }
    const std::vector<int64_t> a = permutation(rewrite, *first), b = permutation(rewrite, *node);
    std::vector<int64_t> both(b.size()), same(b.size());
    for (size_t i = 0; i < b.size(); ++i) both[i] = a[static_cast<size_t>(b[i])];
    std::iota(same.begin(), same.end(), 0);
    const ValueId between = node->inputs[0], x = first->inputs[0];
    if (both != same || !rewrite.bypass(*node, x)) {
      const SourceLocation source = node->source;
      rewrite.replace(*node, "transpose", {x}, {{"perm", both}}, source);
    }
    if (rewrite.reader_count(between) == 0 && !rewrite.leaves(between)) rewrite.remove(*first);
  }
  return rewrite.finish();
}

}  // namespace

extern const PassDef cancel_transposes_pass;
const PassDef cancel_transposes_pass{"cancel_transposes", "merges transposes that follow each other", 0, run};

}  // namespace pinnace
