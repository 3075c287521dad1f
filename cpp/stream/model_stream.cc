// Model::streamed.
#include "base/border.h"
#include "convert/model_data.h"
#include "stream/stream.h"

namespace pinnace {

Result<Model> Model::streamed(std::span<const StreamAxis> streams) const {
  return at_border([&]() -> Result<Model> {
    std::vector<StreamRequest> requests;
    for (const StreamAxis& s : streams) requests.push_back({s.input, s.axis});
    std::shared_ptr<Data> data = data_->clone();
    PINNACE_ASSIGN(Streamed made, stream_graph(data_->graph, requests, data_->custom->table()));
    data->graph = std::move(made.graph);
    for (const StreamedInput& s : made.inputs) {
      data->facts.emplace_back(str_cat("stream.", s.name), str_cat("axis ", s.axis, ", latency ", s.latency,
                                                                   ", multiple ", s.multiple, ", tail ", s.tail));
    }
    for (const StreamedOutput& s : made.outputs) {
      data->facts.emplace_back(str_cat("streamed.", s.name),
                               str_cat("axis ", s.axis, ", rate ", s.up, "/", s.down, ", more ", s.more));
    }
    return optimized(std::move(data), {});
  });
}

std::span<const std::pair<std::string, std::string>> Model::facts() const {
  return data_->facts;
}

}  // namespace pinnace
