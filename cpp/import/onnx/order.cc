// Topological order by Kahn's algorithm; of the nodes that are ready the first in the source comes first.
#include "import/onnx/order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace pinnace::onnx {
namespace {
using Names = std::unordered_set<std::string_view>;

/// Names that a nested graph reads and does not define itself. Nesting is limited by the parser.
void add_free_names(const proto::GraphProto& graph, Names& free) {
  Names own, read;
  for (const auto& input : graph.input()) own.insert(input.name());
  for (const auto& tensor : graph.initializer()) own.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) own.insert(tensor.values().name());
  for (const auto& node : graph.node()) {
    for (const std::string& name : node.output()) own.insert(name);
    for (const std::string& name : node.input()) read.insert(name);
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) add_free_names(attribute.g(), read);
    }
  }
  for (const auto& output : graph.output()) read.insert(output.name());
  for (std::string_view name : read) {
    if (!own.contains(name)) free.insert(name);
  }
}
}  // namespace

Result<std::vector<int>> node_order(const google::protobuf::RepeatedPtrField<proto::NodeProto>& nodes) {
  std::unordered_map<std::string_view, int> maker;
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].output()) {
      if (name.empty()) continue;
      const auto [at, fresh] = maker.emplace(name, i);
      if (!fresh) {
        return Status(Code::kCorruptFile, str_cat("value '", name, "' is made by node ", at->second,
                                                  " and again by node ", i, " (", nodes[i].op_type(), ")"))
            .with_rule("O-21");
      }
    }
  }
  std::vector<std::vector<int>> readers(static_cast<size_t>(nodes.size()));
  std::vector<int> waiting(static_cast<size_t>(nodes.size()), 0);
  for (int i = 0; i < nodes.size(); ++i) {
    Names read(nodes[i].input().begin(), nodes[i].input().end());
    for (const auto& attribute : nodes[i].attribute()) {
      if (attribute.has_g()) add_free_names(attribute.g(), read);
    }
    for (std::string_view name : read) {
      const auto at = maker.find(name);
      if (at == maker.end()) continue;
      readers[static_cast<size_t>(at->second)].push_back(i);
      ++waiting[static_cast<size_t>(i)];
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i) {
    if (waiting[static_cast<size_t>(i)] == 0) ready.push(i);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    order.push_back(next);
    for (int reader : readers[static_cast<size_t>(next)]) {
      if (--waiting[static_cast<size_t>(reader)] == 0) ready.push(reader);
    }
  }
  if (order.size() == static_cast<size_t>(nodes.size())) return order;
  std::string names;
  for (int i = 0, shown = 0; i < nodes.size() && shown < 4; ++i) {
    if (waiting[static_cast<size_t>(i)] == 0) continue;
    names += str_cat(shown++ ? ", " : "", i, " (", nodes[i].op_type(), " '", nodes[i].name(), "')");
  }
  return Status(Code::kCorruptFile, str_cat("nodes wait for each other's outputs: ", names)).with_rule("O-22");
}

std::vector<bool> needed_nodes(const google::protobuf::RepeatedPtrField<proto::NodeProto>& nodes,
                               std::span<const int> order, std::span<const std::string_view> leaving) {
  Names read(leaving.begin(), leaving.end());
  std::vector<bool> needed(static_cast<size_t>(nodes.size()));
  for (size_t k = order.size(); k-- > 0;) {
    const proto::NodeProto& node = nodes[order[k]];
    const auto is_read = [&](const std::string& name) { return !name.empty() && read.contains(name); };
    if (!std::any_of(node.output().begin(), node.output().end(), is_read)) continue;
    needed[static_cast<size_t>(order[k])] = true;
    read.insert(node.input().begin(), node.input().end());
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) add_free_names(attribute.g(), read);
    }
  }
  return needed;
}

}  // namespace pinnace::onnx
