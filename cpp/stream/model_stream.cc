// Model::streamed.
#include "base/exception_boundary.h"
#include "convert/model_data.h"
#include "program/streams.h"
#include "stream/stream.h"

namespace pinnace {

Result<Model> Model::streamed(std::span<const StreamAxis> streams) const {
  return exception_boundary([&]() -> Result<Model> {
    std::vector<StreamRequest> requests;
    for (const StreamAxis& s : streams) requests.push_back({s.input, s.axis});
    std::shared_ptr<Data> data = data_->clone();
    PINNACE_ASSIGN(Streamed made, stream_graph(data_->graph, requests, data_->custom->table()));
    data->graph = std::move(made.graph);
    for (const StreamedInput& s : made.inputs) data->facts.push_back(metadata_of(s));
    for (const StreamedOutput& s : made.outputs) data->facts.push_back(metadata_of(s));
    return optimized(std::move(data), {});
  });
}

std::span<const std::pair<std::string, std::string>> Model::facts() const {
  return data_->facts;
}

}  // namespace pinnace
