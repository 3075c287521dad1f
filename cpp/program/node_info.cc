// A walk in order; the path grows by "node.attribute" at each nested graph.
#include "program/node_info.h"

namespace pinnace {
namespace {

void append(const Graph& graph, const std::string& path, std::vector<NodeInfo>& all) {
  for (const auto& node : graph.nodes) {
    NodeInfo info{node->name, node->op, path, node->source.text(), node->source.module, {}, {}, {}};
    for (ValueId id : node->inputs) info.inputs.push_back(id == kNoValue ? std::string() : graph.value(id).name);
    for (ValueId id : node->outputs) {
      info.outputs.push_back(graph.value(id).name);
      info.output_types.push_back(graph.value(id).type);
    }
    all.push_back(std::move(info));
    for (const auto& [name, attr] : node->attrs) {
      const auto* nested = std::get_if<GraphPtr>(&attr);
      if (nested) append(**nested, str_cat(path, path.empty() ? "" : "/", node->name, ".", name), all);
    }
  }
}

void append_constants(const Graph& graph, std::vector<TensorSpec>& all) {
  for (const Value& value : graph.values) {
    if (value.constant) all.push_back({value.name, value.type});
  }
  for (const auto& node : graph.nodes) {
    for (const auto& [name, attr] : node->attrs) {
      if (const auto* nested = std::get_if<GraphPtr>(&attr)) append_constants(**nested, all);
    }
  }
}

}  // namespace

std::vector<NodeInfo> node_infos(const Graph& graph) {
  std::vector<NodeInfo> all;
  append(graph, "", all);
  return all;
}

std::vector<TensorSpec> constant_specs(const Graph& graph) {
  std::vector<TensorSpec> all;
  append_constants(graph, all);
  return all;
}

}  // namespace pinnace
