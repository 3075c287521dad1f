// What a Model holds after loading.
#pragma once

#include <pinnace/model.h>

#include "graph/graph.h"
#include "import/import.h"
#include "passes/pass.h"
#include "runtime/custom_ops.h"

namespace pinnace {

struct Model::Data {
  Graph graph;
  std::string format;
  std::vector<TensorSpec> inputs, outputs;
  std::vector<std::string> notes;
  std::vector<PassReport> reports;
  std::vector<std::pair<std::string, std::string>> merged;  ///< PassContext::merged
  std::shared_ptr<const CustomOps> custom;
  std::vector<LentBytes> lent;  ///< memory of the source model that constants of the graph lie in
  std::vector<std::pair<std::string, std::string>> facts;  ///< for the metadata of what is built of it
  std::vector<const CustomOp*> ops;                        ///< what `custom` was made of

  /// With a graph of its own, to be changed; bytes of constants are shared.
  std::shared_ptr<Data> clone() const {
    auto data = std::make_shared<Data>();
    data->graph = graph.clone();
    data->format = format;
    data->inputs = inputs;
    data->outputs = outputs;
    data->notes = notes;
    data->reports = reports;
    data->merged = merged;
    data->custom = custom;
    data->lent = lent;
    data->facts = facts;
    data->ops = ops;
    return data;
  }
};

/// The model after its graph was made or changed: types inferred, passes run as `passes` says, unused values dropped.
/// kInvalidArgument: the graph is none, or a shape rule does not hold; errors of passes.
Result<Model> optimized(std::shared_ptr<Model::Data> data, const PassOptions& passes);

}  // namespace pinnace
