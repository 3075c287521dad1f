// <pinnace/testing.h>: graphs given as text, and models as they were imported, run by reference code.
#include <pinnace/testing.h>

#include "base/exception_boundary.h"
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

/// The declared type with the sizes of the given one, or what does not fit. `sizes` holds what each symbol stands for,
/// kUnknown where nothing has fixed it yet.
Result<TensorType> fitted(const Graph& graph, const Value& value, const Tensor& given, std::vector<int64_t>& sizes) {
  const TensorType& declared = value.type;
  const auto fail = [&](const auto&... parts) {
    return invalid("input '", value.name, "' is declared ", to_string(declared, graph.symbols), ": ", parts...);
  };
  if (given.type.dtype != declared.dtype || given.type.rank() != declared.rank() || !given.type.concrete()) {
    return fail("was given ", given.type);
  }
  TensorType type = declared;
  uint64_t bits = static_cast<uint64_t>(dtype_bits(declared.dtype));
  for (size_t i = 0; i < type.shape.size(); ++i) {
    const Dim want = declared.shape[i];
    const int64_t size = given.type.shape[i].size;
    if (want.known() && want.size != size) return fail("dimension ", i, " is ", size);
    if (want.max >= 0 && size > want.max)
      return fail("dimension ", i, " is ", size, ", at most ", want.max, " is allowed");
    if (want.symbol >= 0) {
      const Symbol& symbol = graph.symbols[static_cast<size_t>(want.symbol)];
      int64_t& fixed = sizes[static_cast<size_t>(want.symbol)];
      if (fixed == Dim::kUnknown) fixed = size;
      if (fixed != size) return fail("symbol ", symbol.name, " is ", fixed, " before and ", size, " here");
      if (size < symbol.min || size > symbol.max || size % symbol.multiple_of) {
        return fail("symbol ", symbol.name, " cannot be ", size);
      }
    }
    if (size > 0 && bits > static_cast<uint64_t>(INT64_MAX >> 4) / static_cast<uint64_t>(size)) {
      return fail(given.type, " is larger than memory can be");
    }
    bits *= static_cast<uint64_t>(std::max<int64_t>(size, 1));
    type.shape[i] = size;
  }
  const Memory& memory = given.memory;
  const auto bytes = static_cast<size_t>(type.bytes());
  if (memory.bytes < bytes || (bytes && !memory.host)) {
    return fail("has ", memory.bytes, " bytes of memory, needs ", bytes);
  }
  const auto size = static_cast<uintptr_t>(std::max(dtype_bits(type.dtype) / 8, 1));
  if (reinterpret_cast<uintptr_t>(memory.host) % size) return fail("is not aligned to its elements");
  return type;
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

Result<std::vector<OwnedTensor>> run_graph_text(std::string_view text, std::span<const Tensor> inputs) {
  return exception_boundary([&]() -> Result<std::vector<OwnedTensor>> {
    PINNACE_ASSIGN(const Graph graph, parse(text));
    PINNACE_TRY(verify(graph));
    if (inputs.size() != graph.inputs.size()) {
      return invalid("graph '", graph.name, "' takes ", graph.inputs.size(), " inputs, was given ", inputs.size());
    }
    std::vector<int64_t> sizes(graph.symbols.size(), Dim::kUnknown);
    std::vector<TensorType> types;
    std::vector<TensorView> views;
    for (size_t i = 0; i < inputs.size(); ++i) {
      PINNACE_ASSIGN(TensorType type, fitted(graph, graph.value(graph.inputs[i]), inputs[i], sizes));
      types.push_back(std::move(type));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      views.push_back({&types[i], static_cast<std::byte*>(inputs[i].memory.host)});
    }
    PINNACE_ASSIGN(std::vector<ReferenceOutput> results, run_graph_reference(graph, views));
    std::vector<OwnedTensor> outputs;
    for (ReferenceOutput& result : results) {
      const std::byte* bytes = result.bytes.data();
      outputs.push_back({std::move(result.type), {bytes, bytes + result.bytes.size()}});
    }
    return outputs;
  });
}

Result<std::string> import_model_text(const std::string& path) {
  return exception_boundary([&]() -> Result<std::string> {
    PINNACE_ASSIGN(const Imported imported, import_any(path));
    return print(imported.graph, 64);
  });
}

Result<std::vector<std::vector<OwnedTensor>>> run_model_reference(const std::string& path,
                                                                  std::span<const std::vector<Tensor>> steps) {
  return exception_boundary([&]() -> Result<std::vector<std::vector<OwnedTensor>>> {
    if (path.ends_with(".pnc")) {
      PINNACE_ASSIGN(const Program program, Program::open(path));
      return run_steps(program.data().graph, steps);
    }
    PINNACE_ASSIGN(const Imported imported, import_any(path));
    return run_steps(imported.graph, steps);
  });
}

}  // namespace pinnace
