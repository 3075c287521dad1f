// GraphRunner: binding memory, running steps in order; dynamic nodes are compiled when their types are known.
#include "runtime/graph_runner.h"

#include <algorithm>
#include <cstring>

#include "backends/packed_constants.h"
#include "ops/work.h"

namespace pinnace {

std::list<PlanCache::Entry>::iterator PlanCache::entry_of(std::list<Entry>& of_graph, const PlanRequest& request) {
  return std::find_if(of_graph.begin(), of_graph.end(), [&](const Entry& entry) {
    return std::equal(entry.types.begin(), entry.types.end(), request.input_types.begin(), request.input_types.end());
  });
}

Result<std::shared_ptr<const Plan>> PlanCache::get(const PlanRequest& request) {
  // Also while planning: two sessions would otherwise do the same work twice.
  const WorkLock lock(mutex_, "the planning of a run");
  PINNACE_TRY(lock.status());
  std::list<Entry>& of_graph = entries_[request.key_prefix];
  if (const auto known = entry_of(of_graph, request); known != of_graph.end()) {
    of_graph.splice(of_graph.begin(), of_graph, known);
    return known->plan;
  }
  const LoopsMayStop none(false);  // what plans hold is kept
  PINNACE_ASSIGN(Plan plan, make_plan(request));
  PINNACE_TRY(check_stopped("the planning of a run"));
  auto shared = std::make_shared<const Plan>(std::move(plan));
  of_graph.push_front({{request.input_types.begin(), request.input_types.end()}, shared});
  if (of_graph.size() > capacity_) of_graph.pop_back();
  return shared;
}

std::shared_ptr<const Plan> PlanCache::find(const PlanRequest& request) {
  const WorkLock lock(mutex_, "the planning of a run");
  if (!lock.status().ok()) return nullptr;
  const auto of_graph = entries_.find(request.key_prefix);
  if (of_graph == entries_.end()) return nullptr;
  const auto known = entry_of(of_graph->second, request);
  return known == of_graph->second.end() ? nullptr : known->plan;
}

GraphRunner::GraphRunner(const Graph& graph, std::vector<ValueId> outputs, std::vector<ValueId> state_outputs,
                         const RunnerSetup& setup, std::string key_prefix, int sets)
    : graph_(graph),
      outputs_(outputs),
      leaving_(std::move(outputs)),
      setup_(setup),
      key_prefix_(std::move(key_prefix)),
      sets_(sets) {
  leaving_.insert(leaving_.end(), state_outputs.begin(), state_outputs.end());
}

GraphRunner::~GraphRunner() = default;

std::string prefix_inside(std::string_view prefix, int32_t index, std::string_view part) {
  return str_cat(prefix, numbered(index), " ", part, "/");
}

Result<Instance*> GraphRunner::prepare(std::span<const TensorView> inputs, const Instance* kept) {
  for (auto it = instances_.begin(); it != instances_.end(); ++it) {
    const std::vector<TensorType>& key = (*it)->key;
    bool equal = key.size() == inputs.size();
    for (size_t i = 0; equal && i < key.size(); ++i) {
      equal = key[i].dtype == inputs[i].type->dtype && key[i].shape == inputs[i].type->shape;
    }
    if (!equal) continue;
    instances_.splice(instances_.begin(), instances_, it);
    return instances_.front().get();
  }
  PINNACE_ASSIGN(std::unique_ptr<Instance> made, make(inputs));
  if (instances_.size() >= setup_.instances) {
    // The front one stays: its outputs may be this run's inputs.
    for (auto it = std::prev(instances_.end()); it != instances_.begin(); --it) {
      if ((*it)->pinned || it->get() == kept) continue;
      instances_.erase(it);
      break;
    }
  }
  instances_.push_front(std::move(made));
  return instances_.front().get();
}

Result<std::unique_ptr<Instance>> GraphRunner::make(std::span<const TensorView> inputs) {
  const AheadBudget budget;  // for this plan, and those of the bodies that are planned with it
  auto instance = std::make_unique<Instance>();
  for (size_t i = 0; i < inputs.size(); ++i) {
    // Quantisation belongs to the declared type: callers bring plain integers.
    TensorType type = *inputs[i].type;
    type.quantization = graph_.value(graph_.inputs[i]).type.quantization;
    instance->key.push_back(std::move(type));
  }
  const PlanRequest request{graph_,   instance->key, setup_.targets, setup_.fallback,
                            leaving_, *setup_.ops,   *setup_.packed, key_prefix_};
  PINNACE_ASSIGN(instance->plan, setup_.plans->get(request));
  const Plan& plan = *instance->plan;
  const size_t values = graph_.values.size();
  instance->owned_offset.resize(values, 0);
  size_t owned = 0;
  for (size_t i = 0; i < values; ++i) {
    const Slot& slot = plan.slots[i];
    if (slot.kind != Slot::Kind::kOwned || slot.bytes < 0) continue;
    instance->owned_offset[i] = owned;
    owned += aligned_size(static_cast<size_t>(std::max<int64_t>(slot.bytes, 1)));
  }
  PINNACE_ASSIGN(instance->memory,
                 Buffer::allocate(plan.arena_bytes + owned * static_cast<size_t>(sets_), "a session's memory"));
  instance->views.resize(values);
  instance->actual.resize(values);
  for (auto& set : instance->grown) set.resize(values + outputs_.size());
  instance->results.resize(outputs_.size());
  for (size_t i = 0; i < values; ++i) {
    TensorView& view = instance->views[i];
    view.type = &plan.type_inference.types[i];
    if (plan.slots[i].kind == Slot::Kind::kConstant) {
      view.bytes = const_cast<std::byte*>(plan.type_inference.data[i]->data());
    } else if (plan.slots[i].kind == Slot::Kind::kArena) {
      view.bytes = instance->memory.data() + plan.slots[i].offset;
    }
  }
  instance->steps.resize(plan.steps.size());
  instance->kept_states.resize(graph_.states.size());
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    Instance::StepState& state = instance->steps[s];
    state.inputs.resize(step.inputs.size());
    state.outputs.resize(step.outputs.size());
    if (!step.states.empty()) {
      auto kept = step.executable->keep_states(setup_.fallback || step.target->backend->reopens());
      if (!kept) return name_lost(kept.status(), *step.target->backend);
      state.kept = std::move(*kept);
    }
    for (size_t i = 0; state.kept && i < step.states.size(); ++i) {
      if (!state.kept->keeps(i)) continue;
      instance->kept_states[step.states[i].index] = {state.kept.get(), i, step.target->backend};
    }
    const Node& node = *graph_.nodes[step.nodes[0]];
    if (step.kind == Step::Kind::kControl) {
      state.control = make_control(node, *setup_.ops->find(node.op), *this, step.nodes[0]);
      prepare_control(*state.control, node, plan.type_inference);
    } else if (step.kind == Step::Kind::kDynamic) {
      std::vector<ValueId> ins, outs;
      for (ValueId id : node.inputs) {
        ins.push_back(id == kNoValue ? kNoValue : state.alone.add_value(graph_.value(id).name, graph_.value(id).type));
      }
      for (ValueId id : node.outputs)
        outs.push_back(state.alone.add_value(graph_.value(id).name, graph_.value(id).type));
      Node* alone = state.alone.add_node(node.op, node.version, node.name, std::move(ins), std::move(outs));
      alone->attrs = node.attrs;
      alone->source = node.source;
    }
  }
  return instance;
}

size_t GraphRunner::instance_bytes(const Instance& instance) {
  size_t bytes = instance.memory.size();
  for (const Instance::StepState& s : instance.steps) {
    if (s.control) bytes += control_bytes(*s.control);
  }
  return bytes;
}

Result<std::byte*> GraphRunner::place(Instance& instance, ValueId id, int64_t bytes, int set) {
  const Slot& slot = instance.plan->slots[id];
  if (slot.kind == Slot::Kind::kArena) return instance.memory.data() + slot.offset;
  if (slot.kind == Slot::Kind::kOwned && slot.bytes >= 0 && bytes <= slot.bytes) {
    const size_t set_bytes = (instance.memory.size() - instance.plan->arena_bytes) / static_cast<size_t>(sets_);
    return instance.memory.data() + instance.plan->arena_bytes + static_cast<size_t>(set) * set_bytes +
           instance.owned_offset[id];
  }
  return instance.grown[set][id].reserve(static_cast<size_t>(bytes));
}

Status GraphRunner::run(Instance& instance, std::span<const TensorView> inputs, std::span<const TensorView> states,
                        std::span<const TensorView> given, const RunContext& context, int set) {
  const Plan& plan = *instance.plan;
  for (size_t i = 0; i < inputs.size(); ++i) {
    instance.views[graph_.inputs[i]] = {&instance.key[i], inputs[i].bytes};
  }
  for (size_t i = 0; i < graph_.states.size(); ++i) instance.views[graph_.states[i].input].bytes = states[i].bytes;
  for (ValueId id : leaving_) {
    if (plan.slots[id].kind != Slot::Kind::kOwned || plan.slots[id].bytes < 0) continue;
    PINNACE_ASSIGN(instance.views[id].bytes, place(instance, id, plan.slots[id].bytes, set));
  }
  // An output is computed where the caller wants it; a second mention of the same value is copied at the end.
  for (size_t i = 0; i < given.size(); ++i) {
    const ValueId id = outputs_[i];
    if (given[i].bytes && plan.slots[id].kind == Slot::Kind::kOwned && plan.type_inference.types[id].concrete()) {
      instance.views[id].bytes = given[i].bytes;
    }
  }
  const auto stopped_at = [&](const Step& step) {
    const Node& node = *graph_.nodes[step.nodes[0]];
    return stop_status(str_cat(node.op, " '", node.name, "'"));
  };
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    Instance::StepState& state = instance.steps[s];
    if (context.cancelled()) return stopped_at(step);
    if (step.kind == Step::Kind::kSegment) {
      for (size_t i = 0; i < step.inputs.size(); ++i) state.inputs[i] = instance.views[step.inputs[i]];
      for (size_t i = 0; i < step.outputs.size(); ++i) state.outputs[i] = instance.views[step.outputs[i]];
      RunContext own = context;
      own.workspace = instance.memory.data() + step.workspace_offset;
      own.states = state.kept.get();
      PINNACE_TRY(name_lost(step.executable->run(own, state.inputs, state.outputs), *step.target->backend));
    } else if (step.kind == Step::Kind::kDynamic) {
      PINNACE_TRY(run_dynamic(instance, s, context, set));
    } else {
      const Node& node = *graph_.nodes[step.nodes[0]];
      state.inputs.clear();
      std::vector<const TensorType*> types;
      std::vector<const void*> data;
      for (ValueId id : node.inputs) {
        state.inputs.push_back(id == kNoValue ? TensorView{} : instance.views[id]);
        types.push_back(state.inputs.back().type);
        data.push_back(contents_of(state.inputs.back()));
      }
      const NodeView view(node, *setup_.ops->find(node.op), types, data);
      PINNACE_TRY(run_control(*state.control, view, state.inputs, state.outputs, context));
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        const ValueId id = node.outputs[i];
        instance.actual[id] = *state.outputs[i].type;
        TensorView from{&instance.actual[id], state.outputs[i].bytes};
        if (std::find(leaving_.begin(), leaving_.end(), id) != leaving_.end()) {
          // The body's memory is written again by the next run of this graph, whose inputs these outputs may be.
          const int64_t bytes = from.type->bytes();
          PINNACE_ASSIGN(std::byte * to, place(instance, id, bytes, set));
          if (bytes) std::memcpy(to, from.bytes, static_cast<size_t>(bytes));
          from.bytes = to;
        }
        instance.views[id] = from;
      }
    }
  }
  if (!plan.steps.empty() && context.cancelled()) return stopped_at(plan.steps.back());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const TensorView& from = instance.views[outputs_[i]];
    const int64_t bytes = from.type->bytes();
    std::byte* to = i < given.size() ? given[i].bytes : nullptr;
    const Slot::Kind kind = plan.slots[outputs_[i]].kind;
    if (!to && kind == Slot::Kind::kInput) {  // borrowed from the caller only until return
      PINNACE_ASSIGN(to, instance.grown[set][graph_.values.size() + i].reserve(static_cast<size_t>(bytes)));
    }
    if (to && to != from.bytes && bytes) std::memcpy(to, from.bytes, static_cast<size_t>(bytes));
    instance.results[i] = {from.type, to ? to : from.bytes};
  }
  return {};
}

namespace {

/// Of the sizes that the plan counts on, for memory and for the nodes that read the value.
bool is_within(const TensorType& made, const TensorType& planned) {
  bool within = made.dtype == planned.dtype && made.rank() == planned.rank();
  for (size_t d = 0; within && d < made.shape.size(); ++d) {
    const Dim &now = made.shape[d], &then = planned.shape[d];
    within = then.known() ? now.size == then.size : then.max < 0 || now.size <= then.max;
  }
  return within;
}

}  // namespace

Status GraphRunner::run_dynamic(Instance& instance, size_t s, const RunContext& context, int set) {
  const Step& step = instance.plan->steps[s];
  Instance::StepState& state = instance.steps[s];
  const Node& node = *graph_.nodes[step.nodes[0]];
  const OpDef& op = *setup_.ops->find(node.op);
  std::vector<const TensorType*> types, declared;
  std::vector<const void*> data;
  std::vector<TensorType> key;
  state.inputs.clear();
  for (ValueId id : node.inputs) {
    state.inputs.push_back(id == kNoValue ? TensorView{} : instance.views[id]);
    types.push_back(state.inputs.back().type);
    data.push_back(contents_of(state.inputs.back()));
    if (types.back()) key.push_back(*types.back());
  }
  for (ValueId id : node.outputs) declared.push_back(&graph_.value(id).type);
  const NodeView view(node, op, types, data, declared);
  PINNACE_ASSIGN(std::vector<TensorType> made, infer_node_types(view));
  state.outputs.clear();
  for (size_t i = 0; i < made.size(); ++i) {
    const ValueId id = node.outputs[i];
    if (!made[i].concrete()) return view.error("its size ", made[i], " is still unknown with all inputs there");
    const TensorType& planned = instance.plan->type_inference.types[id];
    if (!is_within(made[i], planned)) return view.error("its type ", made[i], " is not within ", planned);
    PINNACE_ASSIGN(std::byte * to, place(instance, id, made[i].bytes(), set));
    key.push_back(made[i]);
    instance.actual[id] = std::move(made[i]);
    instance.views[id] = {&instance.actual[id], to};
    state.outputs.push_back(instance.views[id]);
  }
  TypeInference type_inference = begin_type_inference(state.alone);
  type_inference.computed = {false};
  const Node& alone = *state.alone.nodes[0];
  std::vector<ValueId> segment_inputs;
  std::vector<TensorView> inputs;
  for (size_t i = 0; i < alone.inputs.size(); ++i) {
    const ValueId id = alone.inputs[i];
    if (id == kNoValue) continue;
    type_inference.types[id] = *types[i];
    type_inference.data[id] = instance.plan->type_inference.data[node.inputs[i]];
    if (type_inference.data[id]) continue;
    segment_inputs.push_back(id);
    inputs.push_back(state.inputs[i]);
  }
  if (!state.executable || state.compiled_for != key) {
    for (size_t i = 0; i < alone.outputs.size(); ++i)
      type_inference.types[alone.outputs[i]] = instance.actual[node.outputs[i]];
    const Segment segment{state.alone,
                          type_inference,
                          {0},
                          segment_inputs,
                          alone.outputs,
                          *setup_.ops,
                          *setup_.packed,
                          prefix_inside(key_prefix_, step.nodes[0], "alone")};
    auto compiled = step.target->backend->compile(segment, step.target->spec);
    if (!compiled) return name_lost(compiled.status(), *step.target->backend);
    state.executable = std::move(*compiled);
    state.compiled_for = std::move(key);
    instance.chose = true;
  }
  RunContext own = context;
  PINNACE_ASSIGN(own.workspace, state.workspace.reserve(state.executable->workspace_bytes()));
  return name_lost(state.executable->run(own, inputs, state.outputs), *step.target->backend);
}

void GraphRunner::note_chosen(Instance& instance) {
  if (!instance.chose) return;
  ChosenKernels chosen;
  for (size_t s = 0; s < instance.steps.size(); ++s) {
    const std::unique_ptr<Executable>& executable = instance.steps[s].executable;
    if (!executable) continue;
    const int32_t node = instance.plan->steps[s].nodes[0];
    chosen.push_back({node, std::string(executable->kernel(0)), executable->notice(0)});
  }
  instance.chosen = std::make_shared<const ChosenKernels>(std::move(chosen));
  instance.chose = false;
}

}  // namespace pinnace
