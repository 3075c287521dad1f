// Import and reference run in one call, for tests of the importers alone.
#include <pinnace/testing.h>

#include "base/border.h"
#include "import/import.h"
#include "ops/type_inference.h"
#include "program/program_data.h"

namespace pinnace {
namespace {
Status check_input(const Graph& graph, size_t index, const Tensor& tensor) {
  const Value& value = graph.value(graph.inputs[index]);
  const auto fail = [&] {
    return invalid("input '", value.name, "' is ", to_string(value.type, graph.symbols), ", was given ",
                   to_string(tensor.type));
  };
  if (tensor.type.dtype != value.type.dtype || tensor.type.rank() != value.type.rank()) return fail();
  for (size_t d = 0; d < value.type.shape.size(); ++d) {
    const Dim& wanted = value.type.shape[d];
    if (wanted.known() && wanted != tensor.type.shape[d]) return fail();
  }
  return {};
}

Result<Imported> import_any(const std::string& path) {
  PINNACE_ASSIGN(const std::string head, sniffed_bytes(path));
  return find_importer(head).import(path, {});
}

Result<std::vector<std::vector<OwnedTensor>>> run_steps(const Graph& graph,
                                                        std::span<const std::vector<Tensor>> steps) {
  std::vector<ConstantPtr> states;
  for (const State& state : graph.states) states.push_back(state.initial);
  std::vector<std::vector<OwnedTensor>> all;
  for (const std::vector<Tensor>& inputs : steps) {
    if (inputs.size() != graph.inputs.size()) {
      return invalid("the model takes ", graph.inputs.size(), " inputs, was given ", inputs.size());
    }
    std::vector<TensorType> types;
    std::vector<TensorView> views;
    types.reserve(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      PINNACE_TRY(check_input(graph, i, inputs[i]));
      types.push_back(inputs[i].type);
      types[i].quantization = graph.value(graph.inputs[i]).type.quantization;  // which no array has
      views.push_back({&types[i], static_cast<std::byte*>(inputs[i].memory.host)});
    }
    PINNACE_ASSIGN(std::vector<ReferenceOutput> outputs, run_graph_reference(graph, views, &states));
    std::vector<OwnedTensor> owned;
    for (ReferenceOutput& output : outputs) {
      OwnedTensor tensor{std::move(output.type), {}};
      tensor.bytes.assign(output.bytes.data(), output.bytes.data() + output.bytes.size());
      owned.push_back(std::move(tensor));
    }
    all.push_back(std::move(owned));
  }
  return all;
}
}  // namespace

Result<std::string> import_onnx_text(const std::string& path) {
  return at_border([&]() -> Result<std::string> {
    PINNACE_ASSIGN(const Imported imported, import_onnx(path, {}));
    return print(imported.graph, 64);
  });
}

Result<std::string> import_model_text(const std::string& path) {
  return at_border([&]() -> Result<std::string> {
    PINNACE_ASSIGN(const Imported imported, import_any(path));
    return print(imported.graph, 64);
  });
}

Result<std::vector<std::vector<OwnedTensor>>> run_model_reference(const std::string& path,
                                                                  std::span<const std::vector<Tensor>> steps) {
  return at_border([&]() -> Result<std::vector<std::vector<OwnedTensor>>> {
    if (path.ends_with(".pnc")) {
      PINNACE_ASSIGN(const Program program, Program::open(path));
      return run_steps(program.data().graph, steps);
    }
    PINNACE_ASSIGN(const Imported imported, import_any(path));
    return run_steps(imported.graph, steps);
  });
}

Result<std::vector<OwnedTensor>> run_onnx_reference(const std::string& path, std::span<const Tensor> inputs) {
  return at_border([&]() -> Result<std::vector<OwnedTensor>> {
    PINNACE_ASSIGN(const Imported imported, import_onnx(path, {}));
    const std::vector<Tensor> step(inputs.begin(), inputs.end());
    PINNACE_ASSIGN(std::vector<std::vector<OwnedTensor>> outputs, run_steps(imported.graph, {&step, 1}));
    return std::move(outputs[0]);
  });
}

}  // namespace pinnace
