// settle_names: the source's names first, then all others around them.
#include "import/source_names.h"

#include <unordered_set>

#include "base/text.h"

namespace pinnace {
namespace {

class Taken {
 public:
  bool take(const std::string& name) { return names_.insert(name).second; }
  /// `wanted`, with a number behind it if it is taken.
  std::string free_name(const std::string& wanted) {
    std::string name = wanted;
    while (!take(name)) name = str_cat(wanted, "_", ++next_);
    return name;
  }

 private:
  std::unordered_set<std::string> names_;
  int64_t next_ = 0;
};

}  // namespace

void settle_names(Graph& graph, const SourceNames& names) {
  Taken values, nodes;
  std::vector<bool> settled(graph.values.size(), false);
  for (const ValueId id : graph.inputs) settled[static_cast<size_t>(id)] = values.take(graph.value(id).name);
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const auto at = names.values.find(static_cast<ValueId>(i));
    if (settled[i] || at == names.values.end() || !values.take(at->second)) continue;
    graph.values[i].name = at->second;
    settled[i] = true;
  }
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (!settled[i]) graph.values[i].name = values.free_name(graph.values[i].name);
  }
  std::vector<Node*> others;
  for (const auto& node : graph.nodes) {
    const auto at = names.nodes.find(node.get());
    if (at != names.nodes.end() && nodes.take(at->second)) {
      node->name = at->second;
    } else {
      others.push_back(node.get());
    }
  }
  for (Node* node : others) node->name = nodes.free_name(node->name);
}

}  // namespace pinnace
