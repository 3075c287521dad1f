// Rows of placement for the nodes of a plan and, below each control flow, for those of its bodies. What the runtime
// runs has plans of its own, which are in the cache once they were made; what a back end took whole runs where it does.
#include "runtime/prepared_data.h"

namespace pinnace {
namespace {

class PlacementRows {
 public:
  PlacementRows(const Prepared::Data& data, bool may_plan) : data_(data), may_plan_(may_plan) {}

  std::vector<Placement> made;

  /// own: a row for each node of `graph`.
  void add(const Graph& graph, const Plan& plan, const std::vector<Placement>& own, const std::string& prefix,
           const std::string& path) {
    for (size_t k = 0; k < graph.nodes.size(); ++k) {
      const Node& node = *graph.nodes[k];
      made.push_back(own[k]);
      made.back().path = path;
      if (made.back().backend == "none") continue;
      const Placement around = made.back();
      for (const auto& [name, attr] : node.attrs) {
        const auto* body = std::get_if<GraphPtr>(&attr);
        if (!body) continue;
        const std::string inner = path_inside(path, node, name);
        const std::string key = prefix_inside(prefix, static_cast<int32_t>(k), name);
        const std::shared_ptr<const Plan> planned =
            around.backend == "runtime" ? plan_of(node, **body, plan.type_inference, key) : nullptr;
        if (planned) {
          add(**body, *planned, planned->placement, key, inner);
        } else {
          add_alike(**body, around.backend, around.backend == "runtime" ? "placed when sizes are known" : around.kernel,
                    inner);
        }
      }
    }
  }

 private:
  static std::string path_inside(const std::string& path, const Node& node, std::string_view name) {
    return str_cat(path, path.empty() ? "" : "/", node.name, ".", name);
  }

  /// All nodes of a body, and of what is nested in it, with the same back end.
  void add_alike(const Graph& graph, const std::string& backend, const std::string& kernel, const std::string& path) {
    for (const auto& node : graph.nodes) {
      Placement row;
      row.node = node->name;
      row.op = node->op;
      row.source = node->source.text();
      row.module = node->source.module;
      row.backend = backend;
      row.kernel = kernel;
      row.path = path;
      made.push_back(std::move(row));
      for (const auto& [name, attr] : node->attrs) {
        if (const auto* body = std::get_if<GraphPtr>(&attr))
          add_alike(**body, backend, kernel, path_inside(path, *node, name));
      }
    }
  }

  /// Null: the sizes of its inputs depend on data, or there is no plan for them.
  std::shared_ptr<const Plan> plan_of(const Node& node, const Graph& body, const TypeInference& outer,
                                      const std::string& key) const {
    std::optional<std::vector<TensorType>> types = body_input_types(node, outer);
    if (!types || types->size() != body.inputs.size()) return nullptr;
    for (size_t i = 0; i < types->size(); ++i) {
      (*types)[i].quantization = body.value(body.inputs[i]).type.quantization;
    }
    const PlanRequest request{body,         *types,           data_.setup.targets, data_.setup.fallback,
                              body.outputs, *data_.setup.ops, *data_.setup.packed, key};
    if (!may_plan_) return data_.plans.find(request);
    auto made_now = data_.plans.get(request);
    return made_now ? *made_now : nullptr;  // what is wrong with it a run will say
  }

  const Prepared::Data& data_;
  const bool may_plan_;
};

}  // namespace

std::vector<Placement> Prepared::Data::placement_of(const Plan& plan, bool may_plan,
                                                    const ChosenKernels* chosen) const {
  PlacementRows rows(*this, may_plan);
  if (chosen && !chosen->empty()) {
    std::vector<Placement> own = plan.placement;
    for (const ChosenKernel& c : *chosen) {
      own[static_cast<size_t>(c.node)].kernel = c.kernel;
      own[static_cast<size_t>(c.node)].notice = c.notice;
    }
    rows.add(graph(), plan, own, "", "");
  } else {
    rows.add(graph(), plan, plan.placement, "", "");
  }
  for (const TargetChoice& target : targets) {
    const std::string unused = target.spec.storing ? "" : target.backend->unused(target.spec);
    if (unused.empty()) continue;
    const auto first = std::find_if(rows.made.begin(), rows.made.end(),
                                    [&](const Placement& row) { return row.backend == target.backend->name(); });
    if (first != rows.made.end()) first->notice += str_cat(first->notice.empty() ? "" : "; ", unused);
  }
  return rows.made;
}

}  // namespace pinnace
