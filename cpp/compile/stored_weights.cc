// Products read integers as they are, and convolutions have a way of their own on the CPU (cpu/plan/precision.cc).
#include "compile/stored_weights.h"

#include <algorithm>

#include "base/cancel.h"
#include "base/text.h"
#include "ops/recurrent.h"

namespace pinnace {
bool has_stored_weights(const Graph& graph) {
  const auto any = [&](auto is) {
    return std::ranges::any_of(graph.nodes, [&](const auto& node) { return is(node->op); });
  };
  return any(is_recurrent) && any([](std::string_view op) { return op == "dequantize_linear"; });
}

Result<ConstantPtr> StoredWeights::make(const Graph& graph, const OpTable& ops, const Node& node,
                                        const TypeInference& found) {
  const TensorType& made = found.types[static_cast<size_t>(node.outputs[0])];
  const ValueId integers = node.inputs[0];
  if (read_.insert(integers).second) room_ += kGrowth * static_cast<int64_t>(graph.value(integers).constant->bytes());
  if (made.bytes() > room_) return ConstantPtr();
  std::vector<TensorView> in;
  for (const ValueId id : node.inputs) {
    in.emplace_back();
    if (id == kNoValue) continue;
    const Value& value = graph.value(id);
    PINNACE_TRY(value.constant->check());
    in.back() = {&value.type, const_cast<std::byte*>(value.constant->data())};
  }
  PINNACE_ASSIGN(auto outputs, run_reference(node, *ops.find(node.op), in, {}, ops));
  room_ -= made.bytes();
  return Constant::of(std::move(outputs[0].bytes));
}

Status StoredWeights::know(const Graph& graph, const OpTable& ops, TypeInference& found) {
  const std::vector<bool> matrices = find_recurrent_matrices(graph);
  const WorkLock lock(mutex_, "the planning of a run");
  PINNACE_TRY(lock.status());
  for (size_t k = 0; k < graph.nodes.size(); ++k) {
    const Node& node = *graph.nodes[k];
    if (found.computed[k] || node.op != "dequantize_linear" || !matrices[static_cast<size_t>(node.outputs[0])])
      continue;
    // Of the file alone: what follows from sizes is another one in another plan.
    const auto constant = [&](ValueId id) { return id == kNoValue || graph.value(id).constant != nullptr; };
    if (!std::ranges::all_of(node.inputs, constant)) continue;
    if (!floats_.contains(k)) {
      PINNACE_TRY(check_stopped(str_cat(node.op, " '", node.name, "'")));
      PINNACE_ASSIGN(floats_[k], make(graph, ops, node, found));
    }
    const ConstantPtr& floats = floats_[k];
    if (!floats) continue;
    found.data[static_cast<size_t>(node.outputs[0])] = floats;
    found.computed[k] = true;
  }
  return {};
}

}  // namespace pinnace
