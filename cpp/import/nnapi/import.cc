// From NNAPI models to graphs: parse and map; of PyTorch's, put back the order of dimensions that PyTorch shows.
#include "import/import.h"

#include <pinnace/model.h>

#include "base/status.h"
#include "import/nnapi/json_model.h"
#include "import/nnapi/torch_model.h"
#include "nnapi/to_graph.h"
#include "ops/work.h"

namespace pinnace {
namespace {

/// PyTorch's DimOrder.
constexpr int kAsItIs = 0, kChannelsLast = 1, kScalarOrVector = 2;
const std::vector<int64_t> kToLast = {0, 2, 3, 1}, kToFirst = {0, 3, 1, 2};

Status check_formats(std::span<const int> formats, size_t count, const char* what) {
  if (formats.size() != count) {
    return invalid(what, ": ", formats.size(), " memory formats, the serialised model has ", count);
  }
  for (size_t i = 0; i < count; ++i) {
    if (formats[i] < kAsItIs || formats[i] > kScalarOrVector) {
      return invalid(what, " ", i, ": memory format ", formats[i], ", known are 0, 1 and 2");
    }
  }
  return {};
}

/// The shapes that the serialised model sees. kInvalidArgument where they contradict what it fixes.
Result<std::vector<nnapi::InputSpec>> input_specs(const nnapi::Model& model, const TorchNnapiModel& source) {
  if (source.input_dims.size() != model.inputs.size()) {
    return invalid("shapes of ", source.input_dims.size(), " inputs, the serialised model has ", model.inputs.size());
  }
  std::vector<nnapi::InputSpec> specs;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    std::vector<uint32_t> dims = source.input_dims[i];
    if (source.input_formats[i] == kChannelsLast) {
      if (dims.size() != 4) return invalid("input ", i, ": rank ", dims.size(), ", channels last needs 4");
      dims = {dims[0], dims[2], dims[3], dims[1]};
    }
    const std::vector<uint32_t>& fixed = model.operands[model.inputs[i]].dims;
    if (dims.size() != fixed.size()) {
      return invalid("input ", i, ": rank ", dims.size(), ", the serialised model has ", fixed.size());
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] == 0 || (fixed[d] != 0 && fixed[d] != dims[d])) {
        return invalid("input ", i, ": size ", dims[d], " of dimension ", d, ", the serialised model has ",
                       fixed[d] ? str_cat(fixed[d]) : std::string("any but 0"));
      }
    }
    specs.push_back({std::move(dims)});
  }
  return specs;
}

TensorType permuted(const TensorType& type, std::span<const int64_t> perm) {
  TensorType made = type;
  for (size_t i = 0; i < perm.size(); ++i) made.shape[i] = type.shape[static_cast<size_t>(perm[i])];
  return made;
}

/// The graph's input i is taken channels first.
void take_channels_first(Graph& graph, size_t i) {
  const ValueId inner = graph.inputs[i];
  const ValueId outer = graph.add_value(str_cat("input_", i, ".nchw"), permuted(graph.value(inner).type, kToFirst));
  Node* node = graph.insert_node(0, "transpose", 1, str_cat("input_", i, ".to_nhwc"), {outer}, {inner});
  node->set_attr("perm", kToLast);
  graph.inputs[i] = outer;
  std::swap(graph.value(inner).name, graph.value(outer).name);
}

void give_channels_first(Graph& graph, size_t i) {
  const ValueId inner = graph.outputs[i];
  const ValueId outer = graph.add_value(str_cat("output_", i, ".nchw"), permuted(graph.value(inner).type, kToFirst));
  graph.add_node("transpose", 1, str_cat("output_", i, ".to_nchw"), {inner}, {outer})->set_attr("perm", kToFirst);
  graph.outputs[i] = outer;
}

}  // namespace

Result<Imported> import_torch_nnapi(const TorchNnapiModel& source, const ImportOptions& options) {
  PINNACE_ASSIGN(const nnapi::Model model, nnapi::parse_torch_model(source.serialized, source.weights));
  PINNACE_TRY(check_formats(source.input_formats, model.inputs.size(), "inputs"));
  PINNACE_TRY(check_formats(source.output_formats, model.outputs.size(), "outputs"));
  PINNACE_ASSIGN(const std::vector<nnapi::InputSpec> specs, input_specs(model, source));
  PINNACE_ASSIGN(nnapi::ModelGraph mapped, nnapi::to_graph(model, specs));
  if (!mapped.needed.empty()) {
    return unsupported("input ", mapped.needed[0],
                       " holds what has to be known before a run: an axis, a size or a stride");
  }
  Imported imported{std::move(mapped.graph), {}};
  Graph& graph = imported.graph;
  graph.name = "nnapi";
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    if (source.input_formats[i] == kChannelsLast) take_channels_first(graph, i);
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    if (source.output_formats[i] != kChannelsLast) continue;
    if (graph.value(graph.outputs[i]).type.rank() != 4) {
      return invalid("output ", i, ": rank ", graph.value(graph.outputs[i]).type.rank(), ", channels last needs 4");
    }
    give_channels_first(graph, i);
  }
  graph = graph.clone();  // the swapped names are indexed anew
  PINNACE_TRY(update_types(graph, options.ops));
  PINNACE_TRY(verify(graph));
  return imported;
}

bool is_json_object(std::string_view head) {
  return head.starts_with('{');  // no field of an ONNX model starts with this byte
}

Result<Imported> import_nnapi_json(const std::string& path, const ImportOptions& options) {
  const AheadBudget budget;
  PINNACE_ASSIGN(const nnapi::JsonModel source, nnapi::parse_json_model(path, options.model_name));
  const nnapi::Model& model = source.model;
  std::vector<nnapi::InputSpec> specs;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const nnapi::Operand& operand = model.operands[model.inputs[i]];
    const ConstantPtr& value = source.values[i];
    if (value && !operand.shape_known()) return invalid(path, ": input ", i, " has a value and dynamic dimensions");
    nnapi::InputSpec spec{value ? operand.dims : std::vector<uint32_t>{}, !value, false, {}};
    if (value) spec.data = {value->data(), value->bytes()};
    specs.push_back(std::move(spec));
  }
  Imported imported;
  imported.notes.push_back(str_cat("needs NNAPI feature level ", source.feature_level));
  for (;;) {
    PINNACE_ASSIGN(nnapi::ModelGraph mapped, nnapi::to_graph(model, specs));
    if (mapped.needed.empty()) {
      imported.graph = std::move(mapped.graph);
      break;
    }
    for (uint32_t i : mapped.needed) {
      if (specs[i].constant) return unsupported(path, ": input ", i, " must be known, and is not enough");
      specs[i].constant = true;
      imported.notes.push_back(
          str_cat("input ", i, " is a constant of the program, since its value must be known before a run"));
    }
  }
  imported.graph.name = "nnapi";
  PINNACE_TRY(update_types(imported.graph, options.ops));
  PINNACE_TRY(verify(imported.graph));
  return imported;
}

}  // namespace pinnace
