// Squeeze without axes of dynamic sizes: one rank for its result, and the notes that say by which reading.
#include "import/onnx/dynamic_ranks.h"

#include <algorithm>

namespace pinnace::onnx {

Result<std::vector<int64_t>> axes_of_size_one(SourceNode& node, const TensorType& type) {
  Import& import = node.scope().builder.import;
  std::vector<int64_t> axes;
  for (size_t d = 0; d < type.shape.size(); ++d) {
    const Dim& dim = type.shape[d];
    if (dim.known()) {
      if (dim.size == 1) axes.push_back(static_cast<int64_t>(d));
      continue;
    }
    Symbol* symbol = dim.symbol >= 0 ? &(*import.symbols)[static_cast<size_t>(dim.symbol)] : nullptr;
    if (symbol && excludes_one(*symbol)) continue;
    const auto& ranges = import.options.symbols;
    const bool stated = symbol && std::any_of(ranges.begin(), ranges.end(),
                                              [&](const Symbol& range) { return range.name == symbol->name; });
    if (!symbol || stated) {
      return refuse(str_cat("without axes its rank depends on sizes that are not known: ",
                            stated ? str_cat("give '", symbol->name, "' the size 1, or a range without 1")
                                   : str_cat("dimension ", d, " is computed when the model runs")),
                    to_string(type, *import.symbols));
    }
    import.at_least_two.emplace_back(symbol->name, node.label());
    symbol->min = 2;
  }
  return axes;
}

bool ranks_contradict(const GraphBuilder& builder, const proto::GraphProto& graph) {
  const auto& outputs = builder.graph.outputs;
  if (outputs.size() != static_cast<size_t>(graph.output_size())) return false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& declared = graph.output(static_cast<int>(i)).type().tensor_type();
    if (declared.has_shape() && declared.shape().dim_size() != builder.type(outputs[i]).rank()) return true;
  }
  return false;
}

void note_at_least_two(const Import& import, std::vector<std::string>& notes) {
  for (const auto& [name, squeeze] : import.at_least_two) {
    notes.push_back(str_cat("Dimension '", name, "' is taken to be at least 2: ", squeeze,
                            " names no axes, and where the size is 1 its result has fewer dimensions. Give '", name,
                            "' the size 1 to convert for that."));
  }
}

void note_ones(std::span<const std::pair<std::string, std::string>> ones, std::vector<std::string>& notes) {
  for (const auto& [name, squeeze] : ones) {
    notes.push_back(str_cat("Dimension '", name, "' is fixed to 1: ", squeeze,
                            " names no axes, and only where the size is 1 its result has the dimensions that the rest "
                            "of the file takes. Give '",
                            name, "' another size, or a range from 2 on, to convert for that."));
  }
}

}  // namespace pinnace::onnx
