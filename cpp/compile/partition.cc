// Asks each target in order of preference for a verdict per node; orders nodes so that runs of one target are long.
#include "compile/partition.h"

#include <algorithm>

#include "base/cancel.h"
#include "compile/rules.h"

namespace pinnace {
namespace {

/// "vulkan does not take resize 'up1': the input must be a constant, is roi (rule V-6)"
std::string refusal(const TargetChoice& choice, const Node& node, const Verdict& v) {
  std::string text = str_cat(choice.backend->name(), " does not take ", node.op, " '", node.name, "': ", v.text);
  if (!v.value.empty()) text += str_cat(", is ", v.value);
  if (!v.rule.empty()) text += str_cat(" (rule ", v.rule, ")");
  return text;
}

std::string joined(std::span<const std::string> texts, std::string_view between) {
  std::string all;
  for (const std::string& text : texts) all += str_cat(all.empty() ? "" : between, text);
  return all;
}

/// Nodes in an order in which all nodes of the current target that are ready run before another target's turn.
std::vector<int32_t> order_by_target(const Graph& graph, const std::vector<int32_t>& target,
                                     const std::vector<bool>& dynamic) {
  const Uses uses(graph);
  const auto count = static_cast<int32_t>(graph.nodes.size());
  std::vector<int32_t> waiting(static_cast<size_t>(count), 0), order;
  std::vector<bool> queued(static_cast<size_t>(count), false);
  // Ready nodes in ascending index: the source's order is kept within a target, so memory stays what the source meant.
  std::vector<int32_t> ready;
  const auto push = [&](int32_t k) { ready.insert(std::upper_bound(ready.begin(), ready.end(), k), k); };
  for (int32_t k = 0; k < count; ++k) {
    if (target[k] == kComputedAhead) continue;
    for (ValueId id : graph.nodes[k]->inputs) {
      if (id != kNoValue && uses.producer[id] >= 0 && target[uses.producer[id]] != kComputedAhead) ++waiting[k];
    }
    if (waiting[k] == 0) push(k);
  }
  int32_t current = INT32_MIN;
  while (!ready.empty()) {
    auto pick =
        std::find_if(ready.begin(), ready.end(), [&](int32_t k) { return target[k] == current && !dynamic[k]; });
    if (pick == ready.end()) pick = ready.begin();
    const int32_t k = *pick;
    ready.erase(pick);
    current = target[k];
    order.push_back(k);
    for (ValueId id : graph.nodes[k]->outputs) {
      for (int32_t reader : uses.readers[id]) {
        if (target[reader] != kComputedAhead && --waiting[reader] == 0) push(reader);
      }
    }
  }
  return order;
}

}  // namespace

bool sizes_come_with_the_run(const Node& node, const TypeInference& type_inference) {
  const auto open = [&](ValueId id) { return id != kNoValue && !type_inference.types[id].concrete(); };
  return std::any_of(node.inputs.begin(), node.inputs.end(), open) ||
         std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId id) { return open(id) || type_inference.asks_again[id]; });
}

Result<Partition> partition(const PlanRequest& request, const TypeInference& type_inference,
                            const GivenBack& given_back) {
  const Graph& graph = request.graph;
  Partition result;
  std::vector<NodeProblem> elsewhere;
  for (size_t k = 0; k < graph.nodes.size(); ++k) {
    const Node& node = *graph.nodes[k];
    PINNACE_TRY(check_stopped(str_cat(node.op, " '", node.name, "'")));
    const OpDef* op = request.ops.find(node.op);
    Placement row{node.name, node.op, node.source.text(), "none", "computed ahead", {}, 0, {}, node.source.module};
    bool dynamic = false;
    int32_t chosen = kComputedAhead;
    if (!type_inference.computed[k]) {
      std::vector<const TensorType*> types, declared;
      std::vector<const void*> data;
      for (ValueId id : node.inputs) {
        types.push_back(id == kNoValue ? nullptr : &type_inference.types[id]);
        data.push_back(id != kNoValue && type_inference.data[id] ? type_inference.data[id]->data() : nullptr);
      }
      for (ValueId id : node.outputs) declared.push_back(&graph.value(id).type);
      dynamic = sizes_come_with_the_run(node, type_inference);
      NodeView view(node, *op, types, data, declared);
      view.set_ops(&request.ops);
      const bool control = !op->reference;
      std::string value;  // that breaks the last rule
      for (size_t t = 0; t < request.targets.size() && chosen < 0; ++t) {
        const TargetChoice& choice = request.targets[t];
        Verdict verdict;
        if (control && !choice.backend->takes_control_flow()) {
          if (choice.backend == &cpu_backend()) continue;  // the runtime is on the CPU
          verdict = planner::refusal(planner::Rule::kControlFlow, {});
        } else if (!choice.lost.empty()) {
          const char* again = choice.reopened.empty() ? "" : ", opened anew and lost again";
          verdict = planner::refusal(planner::Rule::kLost, {});
          verdict.text += str_cat(again, " (", choice.lost, ")");
        } else if (dynamic && choice.backend != &cpu_backend()) {
          verdict = planner::refusal(planner::Rule::kDataSizes, {});
        } else if (const auto found = given_back.find({static_cast<int32_t>(k), static_cast<int32_t>(t)});
                   found != given_back.end()) {
          verdict = found->second;
        } else if (!dynamic) {
          verdict = choice.backend->supports(view, choice.spec);
        }
        if (verdict.supported) {
          chosen = static_cast<int32_t>(t);
          row.backend = choice.backend->name();
          row.kernel = dynamic ? "chosen when sizes are known" : verdict.kernel;
        } else {
          row.why.push_back(refusal(choice, node, verdict));
          value = verdict.value;
        }
      }
      // The runtime is no fallback: the bodies' own nodes still have to run where they were asked to.
      if (!control && !row.why.empty() && (chosen < 0 || !request.targets[static_cast<size_t>(chosen)].asked)) {
        elsewhere.push_back({node.name, node.op, row.source, joined(row.why, "; "), value, row.module});
      }
      if (control && chosen < 0) {
        chosen = kRuntime;
        row.backend = "runtime";
        row.kernel = node.op;
      }
      if (chosen == kComputedAhead) return unsupported(row.why.empty() ? node.name : row.why.back());
    }
    result.target.push_back(chosen);
    result.dynamic.push_back(dynamic);
    result.placement.push_back(std::move(row));
  }
  if (!request.fallback && !elsewhere.empty()) {
    std::vector<std::string> asked;
    for (const TargetChoice& target : request.targets) {
      if (target.asked) asked.emplace_back(target.backend->name());
    }
    std::string text = str_cat(elsewhere.size(), " of ", graph.nodes.size(), " nodes cannot run on ",
                               joined(asked, " or "), " and fallback is off: ", elsewhere[0].rule);
    return Status(Code::kUnsupported, std::move(text)).with_nodes(std::move(elsewhere));
  }
  result.order = order_by_target(graph, result.target, result.dynamic);
  return result;
}

}  // namespace pinnace
