// shape_inference: writes the inferred type of every value into the graph. No arithmetic changes.
#include "ops/bodies.h"
#include "passes/pass.h"

namespace pinnace {
namespace {
Result<int> run(Graph& graph, const PassContext& context) {
  std::vector<TensorType> before;
  for (const Value& v : graph.values) before.push_back(v.type);
  PINNACE_TRY(update_types_of_what_may_fail(graph, context.ops));
  int changes = 0;
  for (size_t i = 0; i < before.size(); ++i) changes += !(graph.values[i].type == before[i]);
  return changes;
}
}  // namespace

extern const PassDef shape_inference_pass;
const PassDef shape_inference_pass{"shape_inference", "infers the type of every value", 0, run};

}  // namespace pinnace
