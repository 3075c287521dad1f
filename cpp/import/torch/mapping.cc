// Lookup of mapping functions; operators of the application.
#include "import/torch/mapping.h"

#include <algorithm>
#include <array>

namespace pinnace::torch_import {

namespace {

using Family = std::span<const Mapping> (*)();

const Mapping* find_in(std::span<const Family> families, std::string_view target) {
  for (const Family family : families) {
    const std::span<const Mapping> rows = family();
    const auto at = std::lower_bound(rows.begin(), rows.end(), target,
                                     [](const Mapping& row, std::string_view wanted) { return row.target < wanted; });
    if (at != rows.end() && at->target == target) return &*at;
  }
  return nullptr;
}

}  // namespace

const Mapping* find_mapping(std::string_view target) {
  static constexpr std::array kFamilies = {
      elementwise_mappings, activation_mappings, creation_mappings,      movement_mappings, view_mappings,
      part_view_mappings,   view_write_mappings, indexing_mappings,      reduce_mappings,   matmul_mappings,
      convolution_mappings, attention_mappings,  normalization_mappings, pooling_mappings,  recurrent_mappings,
      symbolic_mappings,    quantized_mappings,  control_flow_mappings,  vision_mappings,   special_mappings,
      combine_mappings,     ordering_mappings,   scatter_mappings,       image_mappings,    loss_mappings,
      linalg_mappings,      spectral_mappings,   torchao_mappings};
  return find_in(kFamilies, target);
}

const Mapping* find_complex_mapping(std::string_view target) {
  if (takes_pairs(target)) return find_mapping(target);
  static constexpr std::array kFamilies = {complex_mappings, complex_spectral_mappings};
  return find_in(kFamilies, target);
}

void map_custom_operator(Call& call, const std::string& op) {
  std::vector<ValueId> inputs;
  std::vector<std::pair<std::string, Attr>> attrs;
  for (const NamedArgument& named : call.node().inputs) {
    const Argument& a = named.value;
    switch (a.kind) {
      case ArgumentKind::kNone:
        break;
      case ArgumentKind::kTensor:
        inputs.push_back(call.tensor(named.name));
        break;
      case ArgumentKind::kTensors:
        for (ValueId id : call.tensors(named.name)) inputs.push_back(id);
        break;
      case ArgumentKind::kInt:
      case ArgumentKind::kBool:
        attrs.emplace_back(named.name, a.integer);
        break;
      case ArgumentKind::kFloat:
        attrs.emplace_back(named.name, a.real);
        break;
      case ArgumentKind::kString:
        attrs.emplace_back(named.name, a.text);
        break;
      case ArgumentKind::kInts:
        attrs.emplace_back(named.name, call.ints(named.name));
        break;
      case ArgumentKind::kFloats:
        attrs.emplace_back(named.name, call.floats(named.name));
        break;
      default:
        return call.fail(str_cat("argument ", named.name, " of a custom operator has a form that is not supported"));
    }
    call.given(named.name);
  }
  int outputs = 0;
  while (call.meta(static_cast<size_t>(outputs))) ++outputs;
  call.outputs(call.add_node(op, std::move(inputs), std::max(outputs, 1), std::move(attrs)));
}

}  // namespace pinnace::torch_import
