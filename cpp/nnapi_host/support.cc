// Whether a back end takes an operation: it becomes a graph by itself, as a whole model does, and each node is asked
// for.
#include <algorithm>
#include <map>

#include "compile/partition.h"
#include "nnapi_host/objects.h"
#include "passes/pass.h"

namespace pinnace::nnapi_host {
namespace {

/// The operation as a model. Nothing where a shape is dynamic.
std::optional<nnapi::Model> alone(const nnapi::Model& model, const nnapi::Operation& operation) {
  nnapi::Model made;
  made.relaxed = model.relaxed;
  nnapi::Operation copy{operation.code, {}, {}};
  std::map<uint32_t, uint32_t> places;
  for (uint32_t i : operation.inputs) {
    const auto [place, fresh] = places.try_emplace(i, static_cast<uint32_t>(made.operands.size()));
    copy.inputs.push_back(place->second);
    if (!fresh) continue;
    made.operands.push_back(model.operands[i]);
    nnapi::Operand& operand = made.operands.back();
    if (operand.lifetime == nnapi::Lifetime::kConstant || operand.lifetime == nnapi::Lifetime::kOmitted) continue;
    if (operand.lifetime == nnapi::Lifetime::kModel) return std::nullopt;  // control flow is the runtime's
    if (!operand.shape_known()) return std::nullopt;
    operand.lifetime = nnapi::Lifetime::kInput;
    made.inputs.push_back(place->second);
  }
  for (uint32_t i : operation.outputs) {
    copy.outputs.push_back(static_cast<uint32_t>(made.operands.size()));
    made.outputs.push_back(copy.outputs.back());
    made.operands.push_back(model.operands[i]);
    made.operands.back().lifetime = nnapi::Lifetime::kOutput;
  }
  made.operations.push_back(std::move(copy));
  return made;
}

}  // namespace

bool backend_takes(const Backend& backend, const nnapi::Model& model, const nnapi::Operation& operation) {
  const std::optional<nnapi::Model> one = alone(model, operation);
  if (!one) return false;
  std::vector<nnapi::InputSpec> inputs;
  for (uint32_t i : one->inputs) inputs.push_back({one->operands[i].dims});
  auto mapped = nnapi::to_graph(*one, inputs, true);
  if (!mapped || !mapped->needed.empty()) return false;
  Graph& graph = mapped->graph;
  if (!run_passes(graph, PassContext{}, {}).ok()) return false;
  graph.compact();
  const auto type_inference = infer_types(graph);
  if (!type_inference) return false;
  const TargetChoice targets[] = {{&backend, {std::string(backend.name()), "", "fp32"}, ""}};
  const OpTable ops;
  PackedConstants packed;
  const PlanRequest request{graph, {}, targets, false, graph.outputs, ops, packed, ""};
  const auto parts = partition(request, *type_inference);
  // Loops, which recurrent cells become, go round on the CPU.
  return parts.ok() && std::find(parts->target.begin(), parts->target.end(), kRuntime) == parts->target.end();
}

}  // namespace pinnace::nnapi_host
