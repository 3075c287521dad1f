// constant_folding: a node whose inputs are all constant, or whose result does not depend on the inputs' contents (the
// shape of a value of known shape), becomes a constant. Computed by reference code: more exact than at run time,
// bounded by one rounding of each folded operator. Results much larger than their operands stay nodes, so that files do
// not swell; so do nodes that the budget of work does not cover (ops/work.h).
#include "ops/bodies.h"
#include "ops/recurrent.h"
#include "ops/work.h"
#include "passes/pass.h"

namespace pinnace {
namespace {

/// A folded result may exceed its operands by this factor and this many bytes: weights that are transposed or cast are
/// folded, expand and constant_of_shape to large sizes are not.
constexpr int64_t kGrowth = 2, kFreeBytes = 1 << 16;

/// Dequantised weights of fewer bytes become floats.
constexpr int64_t kFewFloats = 1 << 12;

/// For each value, whether nobody but products reads it, as their weights, perhaps transposed, or nobody but recurrent
/// cells, as they are (compile/stored_weights.h). Kernels of convolutions take floats alone, so theirs stay integers
/// only where the floats would be large (kFreeBytes).
std::vector<bool> find_weights(const Graph& graph) {
  std::vector<bool> weights(graph.values.size(), false), others(graph.values.size(), false);
  for (ValueId id : graph.outputs) others[static_cast<size_t>(id)] = true;
  for (size_t k = graph.nodes.size(); k-- > 0;) {
    const Node& node = *graph.nodes[k];
    const bool product = node.op == "mat_mul" || node.op == "gemm";
    const bool moves = node.op == "transpose" && weights[static_cast<size_t>(node.outputs[0])];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      const auto id = static_cast<size_t>(node.inputs[i]);
      ((product && i == 1) || moves ? weights : others)[id] = true;
    }
  }
  const std::vector<bool> matrices = find_recurrent_matrices(graph);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = matrices[i] || (weights[i] && !others[i]);
  return weights;
}

bool stays_integers(const Graph& graph, const Node& node, const std::vector<bool>& weights) {
  if (node.op != "dequantize_linear" || !weights[static_cast<size_t>(node.outputs[0])]) return false;
  const TensorType& y = graph.value(node.outputs[0]).type;
  return y.concrete() && y.bytes() > kFewFloats && dtype_bits(graph.value(node.inputs[0]).type.dtype) <= 16;
}

Result<bool> fold(Graph& graph, const Node& node, const TypeInference& found, const PassContext& context) {
  const OpDef* op = context.ops.find(node.op);
  if (!op || !op->reference || op->context) return false;
  std::vector<TensorView> inputs;
  std::vector<const TensorType*> types, declared;
  std::vector<TensorType> out_types;
  int64_t in_bytes = 0, out_bytes = 0;
  for (ValueId id : node.inputs) {
    if (id == kNoValue) {
      inputs.push_back({});
      types.push_back(nullptr);
      continue;
    }
    const Value& v = graph.value(id);
    if (!v.constant) return false;
    inputs.push_back({&v.type, const_cast<std::byte*>(v.constant->data())});
    types.push_back(&v.type);
    in_bytes += static_cast<int64_t>(v.constant->bytes());
  }
  for (ValueId id : node.outputs) {
    declared.push_back(&graph.value(id).type);
    out_types.push_back(found.types[id].concrete() ? found.types[id] : graph.value(id).type);
    if (!out_types.back().concrete()) return false;  // what it takes is not known
    out_bytes += out_types.back().bytes();
  }
  if (out_bytes > kGrowth * in_bytes + kFreeBytes || out_bytes > context.constant_budget) return false;
  const NodeView view(node, *op, types, {}, declared);
  if (!AheadBudget::spend(rule_work(view) + reference_work(view, out_types))) return false;
  auto outputs = run_reference(node, *op, inputs, declared, context.ops);
  if (!outputs) {
    // What it holds cannot be computed with, an index out of range: an error if it runs, as a branch may not.
    if (outputs.status().code() == Code::kInvalidArgument) return false;
    return outputs.status();
  }
  for (size_t i = 0; i < outputs->size(); ++i) {
    context.constant_budget -= static_cast<int64_t>((*outputs)[i].bytes.size());
    Value& v = graph.value(node.outputs[i]);
    v.type = std::move((*outputs)[i].type);
    v.constant = Constant::of(std::move((*outputs)[i].bytes));
  }
  return true;
}

Result<int> run(Graph& graph, const PassContext& context) {
  PINNACE_ASSIGN(const TypeInference found, infer_what_may_fail(graph, context.ops));
  const std::vector<bool> weights = find_weights(graph);
  std::vector<bool> kept(graph.values.size(), false);
  std::vector<bool> dead(graph.nodes.size(), false);
  int changes = 0;
  for (size_t k = 0; k < graph.nodes.size(); ++k) {
    const Node& node = *graph.nodes[k];
    if (stays_integers(graph, node, weights) || (node.op == "transpose" && kept[static_cast<size_t>(node.inputs[0])])) {
      kept[static_cast<size_t>(node.outputs[0])] = true;
      continue;
    }
    if (found.computed[k]) {
      for (ValueId id : node.outputs) {
        graph.value(id).type = found.types[id];
        graph.value(id).constant = found.data[id];
      }
      dead[k] = true;
    } else {
      PINNACE_ASSIGN(dead[k], fold(graph, node, found, context));
    }
    changes += dead[k];
  }
  if (changes) graph.erase_nodes(dead);
  return changes;
}

}  // namespace

extern const PassDef constant_folding_pass;
const PassDef constant_folding_pass{"constant_folding", "computes what does not depend on the inputs", 1e-6, run};

}  // namespace pinnace
