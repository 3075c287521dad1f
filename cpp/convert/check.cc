// Model::check: what each target says of each node before a program is built, as the planner will ask it.
#include <algorithm>

#include "base/exception_boundary.h"
#include "compile/partition.h"
#include "compile/plan.h"
#include "compile/rules.h"
#include "compile/stored_weights.h"
#include "convert/model_data.h"
#include "ops/work.h"

namespace pinnace {

namespace {

struct Sized {
  TypeInference types;
  bool fits = true;  ///< whether no size of an input is dynamic
};

/// Types at sizes that the graph can have, since verdicts speak of sizes; with dynamic ones where none fits.
Result<Sized> infer_sized(const Graph& graph, const OpTable& ops) {
  const AheadBudget budget;
  const bool open = std::any_of(graph.inputs.begin(), graph.inputs.end(),
                                [&](ValueId id) { return !graph.value(id).type.concrete(); });
  for (int64_t wanted : kTriedSizes) {
    if (!open) break;
    if (auto sized = infer_types(graph, sized_inputs(graph, wanted), {}, ops)) return Sized{std::move(*sized)};
  }
  PINNACE_ASSIGN(TypeInference types, infer_types(graph, {}, {}, ops));
  return Sized{std::move(types), !open};
}

/// Who answers for a target. Metal is in builds for Apple's systems alone, and takes what the back ends take whose
/// lowering it shares.
Result<TargetChoice> who_answers_for(const std::string& target) {
  Result<TargetChoice> choice = find_target(target);
  if (choice.ok() || target.substr(0, target.find(':')) != "metal") return choice;
  for (const char* alike : {"softmetal", "vulkan"}) {
    if (Result<TargetChoice> other = find_target(alike); other.ok()) return other;
  }
  return choice;
}

}  // namespace

Result<std::vector<CheckRow>> Model::check(std::span<const std::string> targets) const {
  return exception_boundary([&]() -> Result<std::vector<CheckRow>> {
    std::vector<TargetChoice> choices;
    for (const std::string& target : targets) {
      // A verdict needs no device, so a target that is known but not available here is asked all the same.
      PINNACE_ASSIGN(TargetChoice choice, who_answers_for(target));
      choices.push_back(std::move(choice));
    }
    std::vector<CheckRow> rows;
    if (choices.empty()) return rows;
    PINNACE_ASSIGN(Sized sized, infer_sized(data_->graph, data_->custom->table()));
    TypeInference& type_inference = sized.types;
    if (has_stored_weights(data_->graph)) {
      PINNACE_TRY(StoredWeights().know(data_->graph, data_->custom->table(), type_inference));
    }
    for (size_t t = 0; t < choices.size(); ++t) {
      const TargetChoice& choice = choices[t];
      const AheadBudget budget;  // of its own, so that no verdict depends on which targets were asked before
      for (size_t k = 0; k < data_->graph.nodes.size(); ++k) {
        const Node& node = *data_->graph.nodes[k];
        const OpDef* op = data_->custom->table().find(node.op);
        CheckRow row{node.name, node.op, node.source.text(), targets[t], true, "", "", "", 0, node.source.module};
        std::vector<const TensorType*> types, declared;
        std::vector<const void*> contents;
        for (ValueId id : node.inputs) {
          types.push_back(id == kNoValue ? nullptr : &type_inference.types[id]);
          contents.push_back(id != kNoValue && type_inference.data[id] ? type_inference.data[id]->data() : nullptr);
        }
        for (ValueId id : node.outputs) declared.push_back(&data_->graph.value(id).type);
        // What is computed ahead never runs anywhere.
        NodeView view(node, *op, types, contents, declared);
        view.set_ops(&data_->custom->table());
        // Control flow that a back end does not take as a whole is the runtime's.
        const bool asked = op->reference || choice.backend->takes_control_flow();
        Verdict verdict;
        if (!type_inference.computed[k] && asked) {
          const bool dynamic = sized.fits && sizes_come_with_the_run(node, type_inference);
          if (!dynamic) {
            verdict = choice.backend->supports(view, choice.spec);
          } else if (choice.backend != &cpu_backend()) {
            verdict = planner::refusal(planner::Rule::kDataSizes, {});
          }
        }
        row.supported = verdict.supported || !op->reference;
        if (!verdict.supported) row.rule = str_cat(verdict.rule, ": ", verdict.text);
        row.value = verdict.value;
        row.rewrite = verdict.rewrite;
        if (!row.supported) {
          for (const TensorType* t : types) row.bytes_copied += t ? std::max<int64_t>(0, bound_bytes(*t)) : 0;
        }
        rows.push_back(std::move(row));
      }
    }
    return rows;
  });
}

}  // namespace pinnace
