// Planning: type inference, partition, segments, compilation, and offsets of the values between segments.
#include "compile/plan.h"

#include <algorithm>

#include "base/log.h"
#include "base/offset_plan.h"
#include "base/type_size.h"
#include "compile/partition.h"
#include "compile/stored_weights.h"

namespace pinnace {

int64_t bound_bytes(const TensorType& type) {
  if (type.concrete()) return fits_memory(type) ? type.bytes() : Dim::kUnknown;  // asked in runs: no copy
  TensorType bound = type;
  for (Dim& d : bound.shape) {
    if (!d.known()) d = d.max >= 0 ? Dim(d.max) : Dim();
  }
  // Bounds come from a file: a product beyond any memory is none.
  return fits_memory(bound) ? bound.bytes() : Dim::kUnknown;
}

namespace {
int64_t size_near(const Symbol& s, int64_t wanted) {
  const int64_t below = (std::max<int64_t>(s.min, 1) - 1) / s.multiple_of * s.multiple_of;
  const int64_t least = below > s.max - s.multiple_of ? below : below + s.multiple_of;
  const int64_t most = s.max / s.multiple_of * s.multiple_of;
  return std::min(std::max(least, wanted / s.multiple_of * s.multiple_of), std::max(most, least));
}
}  // namespace

std::vector<TensorType> sized_inputs(const Graph& graph, int64_t wanted) {
  std::vector<TensorType> types;
  for (ValueId id : graph.inputs) {
    TensorType type = graph.value(id).type;
    for (Dim& d : type.shape) {
      if (d.known()) continue;
      d = d.symbol >= 0 ? size_near(graph.symbols[static_cast<size_t>(d.symbol)], wanted) : wanted;
    }
    types.push_back(std::move(type));
  }
  return types;
}

Status name_lost(Status status, const Backend& backend) {
  if (status.code() == Code::kDeviceLost) {
    status.with_rule(str_cat(backend.name(), status.rule().empty() ? "" : " ", status.rule()));
  }
  return status;
}

namespace {

/// Cuts the order into steps: runs of one target become segments, control flow and dynamic nodes stand alone.
std::vector<Step> cut(const PlanRequest& request, const Partition& parts) {
  std::vector<Step> steps;
  int32_t current = INT32_MIN;
  for (int32_t k : parts.order) {
    const int32_t target = parts.target[k];
    const bool alone = target == kRuntime || parts.dynamic[k];
    if (alone || steps.empty() || target != current) {
      Step step;
      step.kind = target == kRuntime ? Step::Kind::kControl
                  : parts.dynamic[k] ? Step::Kind::kDynamic
                                     : Step::Kind::kSegment;
      if (target >= 0) step.target = &request.targets[static_cast<size_t>(target)];
      steps.push_back(std::move(step));
    }
    steps.back().nodes.push_back(k);
    current = alone ? INT32_MIN : target;
  }
  return steps;
}

/// Which step makes a value and which reads it last, per value; -1: none.
struct Crossings {
  std::vector<int32_t> made, last;
  std::vector<bool> leaves;  ///< outputs, read after the last step
};

/// Fills in the steps' inputs, and the outputs of segments.
Crossings find_crossings(const PlanRequest& request, Plan& plan) {
  const Graph& graph = request.graph;
  const auto end = static_cast<int32_t>(plan.steps.size());
  Crossings c{std::vector<int32_t>(graph.values.size(), -1), std::vector<int32_t>(graph.values.size(), -1),
              std::vector<bool>(graph.values.size(), false)};
  for (ValueId id : request.outputs) c.leaves[id] = true;
  for (int32_t s = 0; s < end; ++s) {
    for (int32_t k : plan.steps[s].nodes) {
      for (ValueId id : graph.nodes[k]->outputs) c.made[id] = s;
    }
  }
  for (int32_t s = 0; s < end; ++s) {
    Step& step = plan.steps[s];
    for (int32_t k : step.nodes) {
      for (ValueId id : graph.nodes[k]->inputs) {
        if (id == kNoValue || plan.type_inference.data[id]) continue;
        c.last[id] = std::max(c.last[id], s);
        if (c.made[id] != s && std::find(step.inputs.begin(), step.inputs.end(), id) == step.inputs.end()) {
          step.inputs.push_back(id);
          const Step* maker = c.made[id] >= 0 ? &plan.steps[c.made[id]] : nullptr;
          if (maker && maker->target && step.target && maker->target->backend != step.target->backend) {
            plan.placement[k].bytes_copied += std::max<int64_t>(0, bound_bytes(plan.type_inference.types[id]));
          }
        }
      }
    }
  }
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (plan.type_inference.data[i] || c.made[i] < 0) continue;
    Step& maker = plan.steps[c.made[i]];
    if (c.last[i] > c.made[i] || c.leaves[i] || maker.kind != Step::Kind::kSegment) {
      maker.outputs.push_back(static_cast<ValueId>(i));
    }
  }
  return c;
}

Segment segment_of(const PlanRequest& request, const Plan& plan, const Step& step) {
  return {request.graph, plan.type_inference, step.nodes,         step.inputs, step.outputs,
          request.ops,   request.packed,      request.key_prefix, step.states};
}

/// Tells segments which states they may keep: those that they read and make, and of which nobody else sees either value
/// during a run.
void find_states(const PlanRequest& request, const Crossings& crossings, Plan& plan) {
  const auto readers = [&](ValueId id) {
    const auto leaving = std::count(request.outputs.begin(), request.outputs.end(), id);
    return leaving + std::count_if(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
             return std::find(step.inputs.begin(), step.inputs.end(), id) != step.inputs.end();
           });
  };
  for (size_t i = 0; i < request.graph.states.size(); ++i) {
    const auto& [in, out] = std::pair(request.graph.states[i].input, request.graph.states[i].output);
    const int32_t made = crossings.made[out];
    // The next value leaves once, as the state's.
    if (made < 0 || readers(in) != 1 || readers(out) != 1) continue;
    Step& step = plan.steps[made];
    const TensorType& type = plan.type_inference.types[in];
    if (step.kind != Step::Kind::kSegment || !type.concrete() || type != plan.type_inference.types[out]) continue;
    const auto input = std::find(step.inputs.begin(), step.inputs.end(), in);
    const auto output = std::find(step.outputs.begin(), step.outputs.end(), out);
    if (input == step.inputs.end() || output == step.outputs.end()) continue;
    step.states.push_back(
        {i, static_cast<size_t>(input - step.inputs.begin()), static_cast<size_t>(output - step.outputs.begin())});
  }
}

/// Shows each segment as a whole to its back end; true if some nodes were given back.
bool review(const PlanRequest& request, const Plan& plan, GivenBack& given_back) {
  bool changed = false;
  for (const Step& step : plan.steps) {
    if (step.kind != Step::Kind::kSegment) continue;
    const std::vector<Verdict> verdicts =
        step.target->backend->review(segment_of(request, plan, step), step.target->spec, request.fallback);
    for (size_t i = 0; i < verdicts.size(); ++i) {
      if (verdicts[i].supported) continue;
      const auto target = static_cast<int32_t>(step.target - request.targets.data());
      changed |= given_back.insert_or_assign({step.nodes[i], target}, verdicts[i]).second;
    }
  }
  return changed;
}

/// Where each node runs, and each refusal; one line for the plan as a whole.
void log_plan(const PlanRequest& request, const Plan& plan, const LogTime& time) {
  std::map<std::string, int> nodes_on;
  std::string sizes, counts;
  int refusals = 0;
  for (const Placement& row : plan.placement) {
    const std::string where = row.backend == "none" ? row.kernel : "on " + row.backend;
    PINNACE_LOG_DEBUG(row.op, " '", row.node, "' ", where, row.backend == "none" ? "" : ": ",
                      row.backend == "none" ? "" : row.kernel);
    for (const std::string& why : row.why) PINNACE_LOG_DEBUG(why);
    ++nodes_on[where];
    refusals += static_cast<int>(row.why.size());
  }
  const auto segments = std::count_if(plan.steps.begin(), plan.steps.end(),
                                      [](const Step& step) { return step.kind == Step::Kind::kSegment; });
  for (const TensorType& type : request.input_types) sizes += str_cat(sizes.empty() ? "" : ", ", type);
  for (const auto& [where, count] : nodes_on) counts += str_cat(", ", count, " ", where);
  PINNACE_LOG_INFO("planned '", request.graph.name, "' for ", sizes.empty() ? "no inputs" : sizes, ": ",
                   plan.placement.size(), " nodes", counts, "; ", refusals, " refusals, ", segments, " segments, ",
                   plan.arena_bytes, " bytes between them, in ", time.text());
}

/// For Options::shape_invariant: floats that follow from sizes, such as the sines of positions, run like all others.
/// Reference code computes them ahead up to kKnownElements, which another size is beyond.
void run_floats_of_sizes(const Graph& graph, TypeInference& found) {
  std::vector<bool> follows(graph.values.size());
  for (size_t k = 0; k < graph.nodes.size(); ++k) {
    if (!found.computed[k]) continue;
    const Node& node = *graph.nodes[k];
    const auto by_size = [&](ValueId id) {
      return id != kNoValue && (follows[static_cast<size_t>(id)] || !found.data[static_cast<size_t>(id)]);
    };
    if (std::none_of(node.inputs.begin(), node.inputs.end(), by_size)) continue;
    bool floats = false;
    for (const ValueId id : node.outputs) {
      follows[static_cast<size_t>(id)] = true;
      floats |= (dtypes(found.types[static_cast<size_t>(id)].dtype) & kFloats) != 0;
    }
    if (!floats) continue;
    found.computed[k] = false;
    for (const ValueId id : node.outputs) found.data[static_cast<size_t>(id)] = nullptr;
  }
}

}  // namespace

Result<Plan> make_plan(const PlanRequest& request) {
  const LogTime time;
  const Graph& graph = request.graph;
  Plan plan;
  PINNACE_ASSIGN(plan.type_inference, infer_types(graph, request.input_types, {}, request.ops));
  if (has_stored_weights(graph)) {
    PINNACE_ASSIGN(const auto weights,
                   request.packed.shared<StoredWeights>(str_cat(request.key_prefix, "stored weights of the graph")));
    PINNACE_TRY(weights->know(graph, request.ops, plan.type_inference));
  }
  const auto is_invariant = [](const TargetChoice& t) { return t.spec.shape_invariant; };
  if (std::any_of(request.targets.begin(), request.targets.end(), is_invariant)) {
    run_floats_of_sizes(graph, plan.type_inference);
  }
  GivenBack given_back;
  Crossings crossings;
  do {  // ends: every turn but the last gives back a node that was not given back before
    PINNACE_ASSIGN(Partition parts, partition(request, plan.type_inference, given_back));
    plan.steps = cut(request, parts);
    plan.placement = std::move(parts.placement);
    crossings = find_crossings(request, plan);
  } while (review(request, plan, given_back));
  find_states(request, crossings, plan);
  const auto& [made, last, leaves] = crossings;
  const auto end = static_cast<int32_t>(plan.steps.size());

  plan.slots.resize(graph.values.size());
  std::vector<Lifetime> lifetimes;
  std::vector<ValueId> planned;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    Slot& slot = plan.slots[i];
    if (plan.type_inference.data[i]) {
      slot.kind = Slot::Kind::kConstant;
      continue;
    }
    if (made[i] < 0) continue;
    const bool crosses = last[i] > made[i] || leaves[i] || plan.steps[made[i]].kind != Step::Kind::kSegment;
    if (!crosses) continue;
    slot.bytes = bound_bytes(plan.type_inference.types[i]);
    const bool by_control = plan.steps[made[i]].kind == Step::Kind::kControl;
    if (by_control && !leaves[i]) slot.bytes = Dim::kUnknown;  // a body leaves its outputs in memory of its own
    if (leaves[i] || slot.bytes < 0) {
      slot.kind = Slot::Kind::kOwned;
      if (slot.bytes >= 0) plan.owned_bytes += aligned_size(static_cast<size_t>(std::max<int64_t>(slot.bytes, 1)));
    } else {
      slot.kind = Slot::Kind::kArena;
      planned.push_back(id);
      lifetimes.push_back({static_cast<size_t>(slot.bytes), made[i], std::max(last[i], made[i])});
    }
  }
  for (ValueId id : graph.inputs) plan.slots[id].kind = Slot::Kind::kInput;
  for (const State& s : graph.states) plan.slots[s.input].kind = Slot::Kind::kInput;

  // Constants are read from here on. A node whose sizes depend on data is a segment of its own when it runs.
  const auto check_inputs = [&](const Step& step) -> Status {
    for (int32_t k : step.nodes) {
      for (ValueId id : graph.nodes[k]->inputs) {
        if (id != kNoValue && plan.type_inference.data[id]) PINNACE_TRY(plan.type_inference.data[id]->check());
      }
    }
    return {};
  };
  for (ValueId id : request.outputs) {
    if (plan.type_inference.data[id]) PINNACE_TRY(plan.type_inference.data[id]->check());
  }
  for (int32_t s = 0; s < end; ++s) {
    Step& step = plan.steps[s];
    if (step.kind == Step::Kind::kControl) PINNACE_TRY(check_inputs(step));
    if (step.kind != Step::Kind::kSegment) continue;
    if (!step.target->backend->checks_constants()) PINNACE_TRY(check_inputs(step));
    auto compiled = step.target->backend->compile(segment_of(request, plan, step), step.target->spec);
    if (!compiled) return name_lost(compiled.status(), *step.target->backend);
    step.executable = std::move(*compiled);
    for (size_t i = 0; i < step.nodes.size(); ++i) {
      plan.placement[step.nodes[i]].kernel = step.executable->kernel(i);
      std::string notice = step.executable->notice(i);
      if (!step.target->reopened.empty()) {
        notice = str_cat("its device was lost (", step.target->reopened, ") and opened anew",
                         notice.empty() ? "" : "; ", notice);
      }
      plan.placement[step.nodes[i]].notice = std::move(notice);
    }
    lifetimes.push_back({step.executable->workspace_bytes(), s, s});
  }
  const OffsetPlan offsets = plan_offsets(lifetimes);
  plan.arena_bytes = offsets.total;
  for (size_t i = 0; i < planned.size(); ++i) plan.slots[planned[i]].offset = offsets.offsets[i];
  size_t next = planned.size();
  for (Step& step : plan.steps) {
    if (step.kind == Step::Kind::kSegment) step.workspace_offset = offsets.offsets[next++];
  }
  log_several(LogLevel::kInfo, [&] { log_plan(request, plan, time); });
  return plan;
}

}  // namespace pinnace
