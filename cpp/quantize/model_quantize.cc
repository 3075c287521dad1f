// The steps of quantisation as calls of Model.
#include <pinnace/model.h>

#include "base/exception_boundary.h"
#include "convert/model_data.h"
#include "ops/work.h"
#include "quantize/float16.h"
#include "quantize/rewrite_graph.h"
#include "quantize/sites.h"
#include "quantize/weight_only.h"

namespace pinnace {

Result<Model> Model::ready_to_quantize(const QuantizeReadyOptions& options) const {
  return exception_boundary([&]() -> Result<Model> {
    const AheadBudget budget;
    std::shared_ptr<Data> data = data_->clone();
    PINNACE_TRY(split_activations(data->graph, data->custom->table()));
    if (options.equalize) PINNACE_TRY(equalize_channels(data->graph, data->custom->table()));
    // Passes would put back what was taken apart.
    return optimized(std::move(data), {.disabled = {"all"}});
  });
}

Result<QuantizationSites> Model::quantization_sites() const {
  return exception_boundary([&]() -> Result<QuantizationSites> {
    const AheadBudget budget;
    return find_sites(data_->graph, data_->custom->table());
  });
}

Result<Model> Model::quantized(const QuantizeChoices& choices) const {
  return exception_boundary([&]() -> Result<Model> {
    const AheadBudget budget;
    std::shared_ptr<Data> data = data_->clone();
    PINNACE_TRY(insert_quantization(data->graph, data->custom->table(), choices));
    PassOptions passes;
    if (!choices.fold) passes.disabled = {"all"};
    return optimized(std::move(data), passes);
  });
}

Result<std::vector<WeightSite>> Model::weight_sites() const {
  return exception_boundary([&]() -> Result<std::vector<WeightSite>> { return find_weight_sites(data_->graph); });
}

Result<Model> Model::with_stored_weights(const WeightChoices& choices) const {
  return exception_boundary([&]() -> Result<Model> {
    const AheadBudget budget;
    std::shared_ptr<Data> data = data_->clone();
    PINNACE_TRY(store_weights(data->graph, data->custom->table(), choices));
    // Constant folding would make floats of small ones; all passes integers of rounded floats.
    const bool all = !choices.passes || (choices.dynamic && !choices.integers);
    return optimized(std::move(data), {.disabled = {all ? "all" : "constant_folding"}});
  });
}

Result<std::vector<Float16Site>> Model::float16_sites() const {
  return exception_boundary(
      [&]() -> Result<std::vector<Float16Site>> { return find_float16_sites(data_->graph, data_->custom->table()); });
}

Result<Model> Model::in_float16(std::span<const std::string> nodes, bool values) const {
  return exception_boundary([&]() -> Result<Model> {
    const AheadBudget budget;
    std::shared_ptr<Data> data = data_->clone();
    PINNACE_TRY(convert_to_float16(data->graph, data->custom->table(), nodes, values));
    PassOptions passes;
    if (!values) passes.disabled = {"all"};
    return optimized(std::move(data), passes);
  });
}

Result<Model> Model::cut(std::span<const std::string> values) const {
  return exception_boundary([&]() -> Result<Model> {
    const AheadBudget budget;
    std::shared_ptr<Data> data = data_->clone();
    PINNACE_TRY(cut_graph(data->graph, values));
    return optimized(std::move(data), {.disabled = {"all"}});
  });
}

}  // namespace pinnace
