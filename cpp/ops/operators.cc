// <pinnace/operators.h>: the schemas of operators as plain data, and graphs given as text run by reference code.
#include <pinnace/operators.h>

#include <cstring>

#include "base/border.h"
#include "base/status.h"
#include "ops/type_inference.h"

namespace pinnace {
namespace {

std::vector<DType> dtype_list(DTypes types) {
  std::vector<DType> list;
  for (int i = 0; i < kDTypeCount; ++i) {
    if (types >> i & 1) list.push_back(static_cast<DType>(i));
  }
  return list;
}

std::string default_text(const AttrDef& attr) {
  if (attr.required) return {};
  switch (attr.kind) {
    case AttrKind::kInt:
      return str_cat(attr.int_default());
    case AttrKind::kFloat:
      return str_cat(attr.float_default());
    case AttrKind::kString:
      return std::string(attr.string_default());
    default:
      return {};
  }
}

OperatorInfo describe(const OpDef& op) {
  OperatorInfo info;
  info.name = op.name;
  info.version = op.version;
  for (const InputDef& in : op.inputs) {
    info.inputs.push_back({std::string(in.name), dtype_list(in.types), in.type_letter, in.arity == Arity::kOptional,
                           in.arity == Arity::kVariadic});
  }
  for (const AttrDef& attr : op.attrs) {
    info.attributes.push_back({std::string(attr.name), attr_kind_name(attr.kind), attr.required, default_text(attr)});
  }
  info.min_outputs = op.min_outputs;
  info.max_outputs = op.max_outputs;
  info.control_flow = op.reference == nullptr;
  return info;
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

}  // namespace

std::vector<OperatorInfo> operators() {
  std::vector<OperatorInfo> all;
  for (const OpDef* op : all_ops()) all.push_back(describe(*op));
  return all;
}

Result<std::vector<OwnedTensor>> run_graph_text(std::string_view text, std::span<const Tensor> inputs) {
  return at_border([&]() -> Result<std::vector<OwnedTensor>> {
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

}  // namespace pinnace
