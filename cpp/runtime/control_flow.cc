// Control flow: `if` picks a body, `loop` runs one again and again. Each body has a GraphRunner of its own; carried
// values move by swapping two sets of memory. Meaning and order of inputs: cpp/ops/if.cc and loop.cc.
#include <algorithm>
#include <cstring>

#include "runtime/graph_runner.h"

namespace pinnace {

struct ControlState {
  std::vector<std::unique_ptr<GraphRunner>> bodies;  // if: then, else; loop: body
  std::vector<Instance*> planned;                    // instances made ahead; their bytes count as the session's
  struct Scan {
    TensorType type;  // of all iterations together
    Storage front, back;
    std::byte* bytes = nullptr;
    size_t used = 0, capacity = 0;
  };
  std::vector<Scan> scans;
  std::vector<Storage> unchanged;  // carried values of a loop that ended before its first iteration
  std::vector<TensorType> carried_types;
  std::vector<TensorView> inputs;
};

namespace {
const Graph& body_of(const Node& node, std::string_view name) {
  return *std::get<GraphPtr>(*node.attr(name));
}
}  // namespace

std::shared_ptr<ControlState> make_control(const Node& node, const OpDef&, const GraphRunner& outer, int32_t index) {
  auto state = std::make_shared<ControlState>();
  const auto add = [&](std::string_view name, int sets) {
    const Graph& body = body_of(node, name);
    state->bodies.push_back(std::make_unique<GraphRunner>(body, body.outputs, std::vector<ValueId>{}, outer.setup(),
                                                          prefix_inside(outer.key_prefix(), index, name), sets));
  };
  if (node.op == "if") {
    add("then_branch", 1);
    add("else_branch", 1);
  } else {
    add("body", 2);
  }
  return state;
}

std::optional<std::vector<TensorType>> body_input_types(const Node& node, const TypeInference& outer) {
  std::vector<TensorType> types;
  size_t first = 1;  // if: after the condition come the captured values
  if (node.op != "if") {
    types = {{DType::kI64, {}, nullptr}, {DType::kBool, {}, nullptr}};
    first = 2;
  }
  for (size_t i = first; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue || !outer.types[node.inputs[i]].concrete()) return std::nullopt;
    types.push_back(outer.types[node.inputs[i]]);
  }
  return types;
}

void prepare_control(ControlState& state, const Node& node, const TypeInference& outer) {
  const std::optional<std::vector<TensorType>> types = body_input_types(node, outer);
  if (!types) return;
  std::vector<TensorView> views;
  for (const TensorType& type : *types) views.push_back({&type, nullptr});
  for (auto& body : state.bodies) {
    if (auto instance = body->prepare(views)) {
      (*instance)->pinned = true;
      state.planned.push_back(*instance);
    }
  }
}

size_t control_bytes(const ControlState& state) {
  size_t bytes = 0;
  for (const Instance* instance : state.planned) bytes += GraphRunner::instance_bytes(*instance);
  return bytes;
}

namespace {

/// Sizes that depend on data are checked when they are there.
Status check_one(const NodeView& node, std::string_view name, const TensorView& value) {
  if (value.elements() == 1) return {};
  return node.error(name, " is ", *value.type, ", must have one element");
}

Status run_if(ControlState& state, const NodeView& node, std::span<const TensorView> inputs,
              std::vector<TensorView>& outputs, const RunContext& context) {
  PINNACE_TRY(check_one(node, "cond", inputs[0]));
  GraphRunner& body = *state.bodies[*inputs[0].data<uint8_t>() ? 0 : 1];
  PINNACE_ASSIGN(Instance * instance, body.prepare(inputs.subspan(1)));
  PINNACE_TRY(body.run(*instance, inputs.subspan(1), {}, {}, context, 0));
  outputs.assign(instance->results.begin(), instance->results.end());
  return {};
}

/// Appends one iteration's output; memory doubles, so that n iterations copy O(n) bytes.
Status append(const NodeView& node, ControlState::Scan& scan, const TensorView& item, int64_t trip) {
  if (trip == 0) {
    scan.type = *item.type;
    scan.type.shape.insert(scan.type.shape.begin(), Dim(0));
    scan.used = 0;
  } else if (!std::equal(item.type->shape.begin(), item.type->shape.end(), scan.type.shape.begin() + 1,
                         scan.type.shape.end())) {
    return node.error("scan output of iteration ", trip, " is ", *item.type, ", differs from those before");
  }
  const auto bytes = static_cast<size_t>(item.type->bytes());
  if (!scan.bytes || scan.used + bytes > scan.capacity) {
    const size_t capacity = std::max<size_t>(2 * scan.capacity, scan.used + bytes);
    PINNACE_ASSIGN(std::byte * grown, scan.back.reserve(capacity));
    if (scan.used) std::memcpy(grown, scan.bytes, scan.used);
    std::swap(scan.front, scan.back);  // only now: what `bytes` points into stays in front if there is no memory
    scan.bytes = grown;
    scan.capacity = capacity;
  }
  if (bytes) std::memcpy(scan.bytes + scan.used, item.bytes, bytes);
  scan.used += bytes;
  scan.type.shape[0] = trip + 1;
  return {};
}

Status run_loop(ControlState& state, const NodeView& node, std::span<const TensorView> inputs,
                std::vector<TensorView>& outputs, const RunContext& context) {
  GraphRunner& body = *state.bodies[0];
  const Graph& graph = body.graph();
  const auto carried = static_cast<size_t>(node.attr_int("carried"));
  int64_t trip = 0;
  if (inputs[0].present()) PINNACE_TRY(check_one(node, "trip_count", inputs[0]));
  if (inputs[1].present()) PINNACE_TRY(check_one(node, "cond", inputs[1]));
  const int64_t trips = inputs[0].present() ? *inputs[0].data<int64_t>() : INT64_MAX;
  uint8_t condition = inputs[1].present() ? *inputs[1].data<uint8_t>() : 1;
  const TensorType index_type{DType::kI64, {}, nullptr}, condition_type{DType::kBool, {}, nullptr};
  state.inputs.assign({{&index_type, reinterpret_cast<std::byte*>(&trip)},
                       {&condition_type, reinterpret_cast<std::byte*>(&condition)}});
  state.inputs.insert(state.inputs.end(), inputs.begin() + 2, inputs.end());
  state.carried_types.resize(carried);
  state.scans.resize(graph.outputs.size() - 1 - carried);
  for (size_t i = 0; i < state.scans.size(); ++i) {
    ControlState::Scan& scan = state.scans[i];
    scan.type = graph.value(graph.outputs[1 + carried + i]).type;
    scan.type.shape.insert(scan.type.shape.begin(), Dim(0));
    for (Dim& d : scan.type.shape) d = d.known() ? d : Dim(0);
    scan.used = 0;
  }
  const auto began = std::chrono::steady_clock::now();
  const std::chrono::nanoseconds limit = inputs[0].present() ? std::chrono::nanoseconds(0) : context.loop_limit;
  for (; trip < trips && condition; ++trip) {
    if (limit.count() > 0 && std::chrono::steady_clock::now() - began > limit) {
      return fail_with(Code::kCancelled, node.label(), ": the loop had not ended after ", trip, " iterations in ",
                       limit.count(), " ns");
    }
    if (context.cancelled()) return stop_status(str_cat("iteration ", trip, " of ", node.label()));
    PINNACE_ASSIGN(Instance * instance, body.prepare(state.inputs));
    PINNACE_TRY(body.run(*instance, state.inputs, {}, {}, context, static_cast<int>(trip & 1)));
    PINNACE_TRY(check_one(node, "the body's cond", instance->results[0]));
    condition = *instance->results[0].data<uint8_t>();
    for (size_t i = 0; i < carried; ++i) {
      // The type is copied: the instance that owns it may go when shapes change. The bytes stay for the next iteration,
      // in which a changed shape takes another instance and an unchanged one the other set.
      state.carried_types[i] = *instance->results[1 + i].type;
      state.inputs[2 + i] = {&state.carried_types[i], instance->results[1 + i].bytes};
    }
    for (size_t i = 0; i < state.scans.size(); ++i) {
      PINNACE_TRY(append(node, state.scans[i], instance->results[1 + carried + i], trip));
    }
  }
  if (trip == 0) {  // the outputs may live longer than the inputs, whose memory is then others'
    state.unchanged.resize(carried);
    for (size_t i = 0; i < carried; ++i) {
      const auto bytes = static_cast<size_t>(state.inputs[2 + i].type->bytes());
      PINNACE_ASSIGN(std::byte * own, state.unchanged[i].reserve(bytes));
      if (bytes) std::memcpy(own, state.inputs[2 + i].bytes, bytes);
      state.inputs[2 + i].bytes = own;
    }
  }
  outputs.assign(state.inputs.begin() + 2, state.inputs.begin() + 2 + static_cast<ptrdiff_t>(carried));
  for (ControlState::Scan& scan : state.scans) {
    PINNACE_TRY(scan.bytes ? Status() : [&]() -> Status {
      PINNACE_ASSIGN(scan.bytes, scan.front.reserve(1));
      return {};
    }());
    outputs.push_back({&scan.type, scan.bytes});
  }
  return {};
}

}  // namespace

Status run_control(ControlState& state, const NodeView& node, std::span<const TensorView> inputs,
                   std::vector<TensorView>& outputs, const RunContext& context) {
  const Status status = node.node().op == "if" ? run_if(state, node, inputs, outputs, context)
                                               : run_loop(state, node, inputs, outputs, context);
  return status.ok() ? status : inside(node, status);
}

}  // namespace pinnace
