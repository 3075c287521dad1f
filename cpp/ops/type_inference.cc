// Type and shape inference over a graph; and the reference interpreter, which runs a graph node by node.
#include "ops/type_inference.h"

#include <algorithm>
#include <cstring>

#include "base/cancel.h"
#include "base/threads/thread.h"
#include "ops/bodies.h"
#include "ops/empty.h"
#include "ops/type_inference_counted.h"
#include "ops/work.h"

namespace pinnace {

const OpDef* OpTable::find(std::string_view name) const {
  for (const OpDef* op : extra_) {
    if (op->name == name) return op;
  }
  return find_op(name);
}

namespace {

void grow(TypeInference& state, size_t values) {
  if (state.types.size() >= values) return;
  state.types.resize(values);
  state.data.resize(values);
  state.known.resize(values);
  state.asks_again.resize(values, false);
}

/// What stays partly known through the operators that shapes are computed with. `inputs[i]` is empty where nothing is.
std::vector<KnownInt> partly_known(const NodeView& node) {
  const std::string& op = node.node().op;
  if (op == "shape") {
    const Shape& shape = node.input(0).shape;
    const auto rank = static_cast<int64_t>(shape.size());
    const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
    std::vector<KnownInt> sizes;
    for (int64_t i = clamp(node.attr_int("start")); i < clamp(node.attr_int("end")); ++i) {
      const Dim& d = shape[static_cast<size_t>(i)];
      sizes.push_back({d.known(), d.size, d.symbol});
    }
    return sizes;
  }
  if (op == "size" && node.input(0).concrete()) return {{true, node.input(0).elements(), -1}};
  if (op == "cast" || op == "identity" || op == "unsqueeze" || op == "squeeze" || op == "reshape") {
    return node.input_known(0).value_or(std::vector<KnownInt>{});
  }
  if (op == "concat") {
    std::vector<KnownInt> all;
    for (int i = 0; i < node.input_count(); ++i) {
      const auto part = node.input_known(i);
      if (!part) {
        if (!node.input(i).concrete() || node.input(i).elements() > kKnownElements) return {};
        all.resize(all.size() + static_cast<size_t>(node.input(i).elements()));
      } else {
        all.insert(all.end(), part->begin(), part->end());
      }
      if (all.size() > kKnownElements) return {};
    }
    return all;
  }
  if (op == "gather" && node.input(0).rank() == 1) {
    const auto from = node.input_known(0);
    const auto at = node.input_ints(1);
    if (!from || !at) return {};
    std::vector<KnownInt> picked;
    for (int64_t i : *at) {
      const int64_t index = i < 0 ? i + static_cast<int64_t>(from->size()) : i;
      if (index < 0 || index >= static_cast<int64_t>(from->size())) return {};
      picked.push_back((*from)[static_cast<size_t>(index)]);
    }
    return picked;
  }
  if (op == "slice" && node.input(0).rank() == 1) {
    const auto from = node.input_known(0);
    const auto starts = node.input_ints(1), ends = node.input_ints(2);
    if (!from || !starts || !ends || starts->size() != 1) return {};
    if (node.has_input(4) && node.input_ints(4) != std::vector<int64_t>{1}) return {};
    const auto size = static_cast<int64_t>(from->size());
    const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
    const int64_t first = clamp((*starts)[0]), last = std::max(clamp((*ends)[0]), first);
    return {from->begin() + first, from->begin() + last};
  }
  return {};
}

/// The bytes of an i32 or i64 value of which every element is known, else null. Sizes of tensors become contents this
/// way although the tensors' own contents are not known.
Result<ConstantPtr> known_contents(const TensorType& type, std::span<const KnownInt> known) {
  const bool wide = type.dtype == DType::kI64;
  if (!type.concrete() || type.elements() != static_cast<int64_t>(known.size())) return ConstantPtr();
  PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>(type.bytes()), "a computed value"));
  for (size_t i = 0; i < known.size(); ++i) {
    const int64_t value = known[i].value;
    if (!known[i].known || (!wide && value != static_cast<int32_t>(value))) return ConstantPtr();
    if (wide) {
      reinterpret_cast<int64_t*>(bytes.data())[i] = value;
    } else {
      reinterpret_cast<int32_t*>(bytes.data())[i] = static_cast<int32_t>(value);
    }
  }
  return Constant::of(std::move(bytes));
}

/// What becomes of a node that could be computed ahead and whose contents reference code refuses.
enum class Contents : uint8_t {
  kMustDo,   ///< that is the error
  kMayFail,  ///< it is not computed ahead
};

Status infer_one(const Graph& graph, const Node& node, TypeInference& state, const OpTable& ops, Contents contents) {
  if (stopped()) return stop_status(str_cat(node.op, " '", node.name, "'"));
  const OpDef* op = ops.find(node.op);
  if (!op) {
    const std::string where = node.source.text();
    const std::string what =
        str_cat("operator ", node.op, " (node '", node.name, "'", where.empty() ? "" : ", ", where);
    if (node.op.find('.') != std::string::npos)  // as no built-in name has
      return unsupported(what, ") is an application's own, which is not registered here");
    return unsupported(what, ") is not in this build, which has ", all_ops().size(), " operators");
  }
  if (node.version != op->version) {
    return unsupported(node.op, " '", node.name, "' is of operator version ", node.version, ", this build has ",
                       op->version);
  }
  std::vector<const TensorType*> types, declared;
  std::vector<const void*> data;
  std::vector<const std::vector<KnownInt>*> known;
  bool all_known = op->reference != nullptr;
  for (ValueId id : node.inputs) {
    types.push_back(id == kNoValue ? nullptr : &state.types[id]);
    data.push_back(id != kNoValue && state.data[id] ? state.data[id]->data() : nullptr);
    known.push_back(id != kNoValue && !state.known[id].empty() ? &state.known[id] : nullptr);
    all_known &= id == kNoValue || state.data[id] != nullptr;
  }
  for (ValueId id : node.outputs) declared.push_back(&graph.value(id).type);
  NodeView view(node, *op, types, data, declared, known);
  view.set_ops(&ops);
  // Rules that run the operator where they know its inputs are not told what these hold if that takes too long.
  if (all_known && !AheadBudget::spend(rule_work(view))) {
    std::fill(data.begin(), data.end(), nullptr);
    all_known = false;
  }
  PINNACE_ASSIGN(std::vector<TensorType> outputs, infer_node_types(view));
  // Control flow asks for the nodes of its graphs, which do so themselves when they are planned.
  const bool again = op->reference && view.asked_for_unknown_ints();
  for (ValueId id : node.outputs) state.asks_again[id] = again;
  int64_t elements = 0, bytes = 0;
  for (const TensorType& type : outputs) {
    all_known &= type.concrete();
    elements = std::max(elements, type.elements());
    bytes += std::max<int64_t>(0, type.bytes());
  }
  if (all_known && elements <= kKnownElements && state.computed_bytes + bytes <= kComputedBytes &&
      AheadBudget::spend(reference_work(view, outputs))) {
    state.computed_bytes += bytes;
    std::vector<TensorView> in, out;
    std::vector<Buffer> buffers;
    for (ValueId id : node.inputs) {
      if (id != kNoValue) PINNACE_TRY(state.data[id]->check());
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      // Reference code only reads its inputs; TensorView has one type of pointer for both directions.
      in.push_back({types[i], const_cast<std::byte*>(static_cast<const std::byte*>(data[i]))});
    }
    for (const TensorType& type : outputs) {
      PINNACE_ASSIGN(Buffer buffer, Buffer::allocate(static_cast<size_t>(type.bytes()), node.name));
      out.push_back({&type, buffer.data()});
      buffers.push_back(std::move(buffer));
    }
    const Status computed = compute(view, in, out);
    if (computed.ok()) {
      for (size_t i = 0; i < outputs.size(); ++i) state.data[node.outputs[i]] = Constant::of(std::move(buffers[i]));
    } else if (computed.code() != Code::kInvalidArgument || contents == Contents::kMustDo) {
      return computed;
    }
  } else if (outputs.size() == 1 && outputs[0].rank() <= 1 &&
             (outputs[0].dtype == DType::kI64 || outputs[0].dtype == DType::kI32) &&
             state.computed_bytes <= kComputedBytes) {
    std::vector<KnownInt> known = partly_known(view);
    if (outputs[0].elements() == static_cast<int64_t>(known.size())) {  // a rule's type may say less than its contents
      state.computed_bytes += static_cast<int64_t>(known.size() * sizeof(KnownInt));
      PINNACE_ASSIGN(state.data[node.outputs[0]], known_contents(outputs[0], known));
      state.known[node.outputs[0]] = std::move(known);
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) state.types[node.outputs[i]] = std::move(outputs[i]);
  return {};
}

/// "resize 'up1'" errors get the node's place in the user's code appended.
Status with_source(Status status, const Node& node) {
  const std::string source = node.source.text();
  if (status.ok() || source.empty() || status.message().find(source) != std::string::npos) return status;
  Status located(status.code(), str_cat(status.message(), " (", source, ")"));
  located.with_nodes(status.nodes()).with_rule(status.rule()).with_offset(status.offset());
  return located;
}

}  // namespace

Status name_symbols(Status status, std::span<const Symbol> symbols) {
  if (status.ok() || symbols.empty()) return status;
  const std::string& text = status.message();
  std::string named;
  for (size_t i = 0; i < text.size(); ++i) {
    named += text[i];
    // In a shape only: behind '[' or ',', before ',' or ']'.
    if ((text[i] != '[' && text[i] != ',') || i + 1 >= text.size() || text[i + 1] != 's') continue;
    size_t end = i + 2, number = 0;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9' && number < symbols.size())
      number = number * 10 + static_cast<size_t>(text[end++] - '0');
    const bool closed = end < text.size() && (text[end] == ',' || text[end] == ']');
    if (end == i + 2 || !closed || number >= symbols.size()) continue;
    named += symbols[number].name;
    i = end - 1;
  }
  if (named == text) return status;
  Status clear(status.code(), std::move(named));
  clear.with_nodes(status.nodes()).with_rule(status.rule()).with_offset(status.offset());
  return clear;
}

TypeInference begin_type_inference(const Graph& graph) {
  TypeInference state;
  grow(state, graph.values.size());
  for (size_t i = 0; i < graph.values.size(); ++i) {
    state.types[i] = graph.values[i].type;
    state.data[i] = graph.values[i].constant;
  }
  return state;
}

namespace {

Status infer_last(const Graph& graph, const Node& node, TypeInference& state, const OpTable& ops, Contents contents) {
  const size_t before = state.types.size();
  grow(state, graph.values.size());
  for (size_t i = before; i < graph.values.size(); ++i) {
    state.types[i] = graph.values[i].type;
    state.data[i] = graph.values[i].constant;
  }
  const AheadBudget budget;
  const Bodies bodies(nested_nodes(node));
  return with_source(name_symbols(infer_one(graph, node, state, ops, contents), graph.symbols), node);
}

Result<TypeInference> infer_graph(const Graph& graph, std::span<const TensorType> input_types,
                                  std::span<const ConstantPtr> input_data, const OpTable& ops, Contents contents,
                                  size_t* inferred = nullptr) {
  const DefaultFloats floats;
  TypeInference state = begin_type_inference(graph);
  state.computed.resize(graph.nodes.size(), false);
  for (size_t i = 0; i < input_types.size(); ++i) state.types[graph.inputs[i]] = input_types[i];
  for (size_t i = 0; i < input_data.size(); ++i) state.data[graph.inputs[i]] = input_data[i];
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = *graph.nodes[i];
    if (inferred) *inferred = i;
    PINNACE_TRY(with_source(name_symbols(infer_one(graph, node, state, ops, contents), graph.symbols), node));
    bool all = true;
    for (ValueId id : node.outputs) all &= state.data[id] != nullptr;
    state.computed[i] = all;
  }
  if (inferred) *inferred = graph.nodes.size();
  return state;
}

/// Innermost first. That types of nested graphs change takes nothing from what Bodies keeps: a graph is inferred as
/// part of those around it, and they come after it.
Status update_graph(Graph& graph, const OpTable& ops, Contents contents) {
  for (const auto& node : graph.nodes) {
    for (auto& [name, attr] : node->attrs) {
      if (auto* body = std::get_if<GraphPtr>(&attr)) PINNACE_TRY(update_graph(**body, ops, Contents::kMayFail));
    }
  }
  PINNACE_ASSIGN(TypeInference found, infer_graph(graph, {}, {}, ops, contents));
  for (size_t i = 0; i < graph.values.size(); ++i) graph.values[i].type = std::move(found.types[i]);
  return {};
}

}  // namespace

Result<TypeInference> infer_types(const Graph& graph, std::span<const TensorType> input_types,
                                  std::span<const ConstantPtr> input_data, const OpTable& ops) {
  const AheadBudget budget;
  const Bodies bodies(nested_nodes(graph));
  return infer_graph(graph, input_types, input_data, ops, Contents::kMustDo);
}

Result<TypeInference> infer_types_counted(const Graph& graph, std::span<const TensorType> input_types,
                                          std::span<const ConstantPtr> input_data, const OpTable& ops,
                                          size_t& inferred) {
  const AheadBudget budget;
  const Bodies bodies(nested_nodes(graph));
  return infer_graph(graph, input_types, input_data, ops, Contents::kMustDo, &inferred);
}

Status infer_into(const Graph& graph, const Node& node, TypeInference& state, const OpTable& ops) {
  return infer_last(graph, node, state, ops, Contents::kMustDo);
}

Status update_types(Graph& graph, const OpTable& ops) {
  const AheadBudget budget;
  const Bodies bodies(nested_nodes(graph));
  return update_graph(graph, ops, Contents::kMustDo);
}

Result<TypeInference> infer_what_may_fail(const Graph& graph, const OpTable& ops) {
  const AheadBudget budget;
  const Bodies bodies(nested_nodes(graph));
  return infer_graph(graph, {}, {}, ops, Contents::kMayFail);
}

Status infer_into_what_may_fail(const Graph& graph, const Node& node, TypeInference& state, const OpTable& ops) {
  return infer_last(graph, node, state, ops, Contents::kMayFail);
}

Status update_types_of_what_may_fail(Graph& graph, const OpTable& ops) {
  const AheadBudget budget;
  const Bodies bodies(nested_nodes(graph));
  return update_graph(graph, ops, Contents::kMayFail);
}

Result<TypeInference> infer_nested(const Graph& body, std::span<const TensorType> input_types,
                                   std::span<const ConstantPtr> input_data, const OpTable& ops, Bodies& bodies) {
  // Nodes nested deeper are charged for when they are inferred.
  size_t steps = 1;
  for (const auto& node : body.nodes) steps += 1 + node->inputs.size() + node->outputs.size();
  PINNACE_TRY(bodies.charge(static_cast<int64_t>(steps)));
  PINNACE_ASSIGN(TypeInference found, infer_graph(body, input_types, input_data, ops, Contents::kMayFail));
  int64_t more = found.computed_bytes / Bodies::kBytesPerStep;
  for (const TensorType& type : found.types) more += type.rank();
  PINNACE_TRY(bodies.charge(more));
  return found;
}

namespace {

using Outputs = std::vector<ReferenceOutput>;

Result<Outputs> run_if(const NodeView& node, std::span<const TensorView> inputs, const OpTable& ops) {
  const bool taken = *inputs[0].data<uint8_t>() != 0;
  return run_graph_reference(node.attr_graph(taken ? "then_branch" : "else_branch"), inputs.subspan(1), nullptr, ops,
                             node.threads());
}

/// What a loop gathered of one scan output: the items of all iterations one after another.
struct Scan {
  TensorType item;
  Buffer bytes;  ///< doubles when full, so that gathering takes linear time
  size_t used = 0;
  int64_t count = 0;
};

/// Appends one iteration's item; all iterations must agree in type.
Status append_scan(const NodeView& node, const ReferenceOutput& item, Scan& scan) {
  if (scan.count > 0 && !(scan.item == item.type)) {
    return node.error("a scan output of iteration ", scan.count, " is ", item.type, ", those before ", scan.item);
  }
  scan.item = item.type;
  const auto size = static_cast<size_t>(item.type.bytes());
  if (scan.used + size > scan.bytes.size()) {
    PINNACE_ASSIGN(Buffer larger, Buffer::allocate(std::max(2 * scan.bytes.size(), scan.used + size), "a scan output"));
    if (scan.used) std::memcpy(larger.data(), scan.bytes.data(), scan.used);
    scan.bytes = std::move(larger);
  }
  if (size) std::memcpy(scan.bytes.data() + scan.used, item.bytes.data(), size);
  scan.used += size;
  ++scan.count;
  return {};
}

// loop: inputs [trip count or left out, condition or left out, carried..., captured...]; body inputs
// [iteration i64[], condition bool[], carried..., captured...]; body outputs [condition, carried..., scans...]. The
// shape rule has checked all counts, and that trip count and condition have one element.
Result<Outputs> run_loop(const NodeView& node, std::span<const TensorView> inputs, std::span<const TensorType> types,
                         const OpTable& ops) {
  const Graph& body = node.attr_graph("body");
  const auto carried = static_cast<size_t>(node.attr_int("carried"));
  const int64_t trips = inputs[0].present() ? *inputs[0].data<int64_t>() : INT64_MAX;
  uint8_t condition = inputs[1].present() ? *inputs[1].data<uint8_t>() : 1;
  Outputs state;
  for (size_t i = 0; i < carried; ++i) {
    PINNACE_ASSIGN(Buffer copy, Buffer::allocate(static_cast<size_t>(inputs[2 + i].type->bytes()), "a carried value"));
    if (copy.size()) std::memcpy(copy.data(), inputs[2 + i].bytes, copy.size());
    state.push_back({*inputs[2 + i].type, std::move(copy)});
  }
  std::vector<Scan> scans(body.outputs.size() - 1 - carried);
  const TensorType index_type{DType::kI64, {}, nullptr}, condition_type{DType::kBool, {}, nullptr};
  for (int64_t trip = 0; trip < trips && condition; ++trip) {
    std::vector<TensorView> in = {{&index_type, reinterpret_cast<std::byte*>(&trip)},
                                  {&condition_type, reinterpret_cast<std::byte*>(&condition)}};
    for (ReferenceOutput& value : state) in.push_back({&value.type, value.bytes.data()});
    for (size_t i = 2 + carried; i < inputs.size(); ++i) in.push_back(inputs[i]);
    PINNACE_ASSIGN(Outputs out, run_graph_reference(body, in, nullptr, ops, node.threads()));
    if (out[0].type.elements() != 1)
      return node.error("the body's condition is ", out[0].type, ", must have one element");
    condition = *reinterpret_cast<const uint8_t*>(out[0].bytes.data());
    for (size_t i = 0; i < scans.size(); ++i) PINNACE_TRY(append_scan(node, out[1 + carried + i], scans[i]));
    for (size_t i = 0; i < carried; ++i) state[i] = std::move(out[1 + i]);
  }
  for (size_t i = 0; i < scans.size(); ++i) {
    TensorType type = types[carried + i];  // no iteration: sizes that nothing fixed are 0
    if (scans[i].count) {
      type = scans[i].item;
      type.shape.insert(type.shape.begin(), Dim(scans[i].count));
    } else {
      for (Dim& d : type.shape) d = d.known() ? d : Dim(0);
      type.shape[0] = 0;
    }
    PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(scans[i].used, "a scan output"));
    if (scans[i].used) std::memcpy(bytes.data(), scans[i].bytes.data(), scans[i].used);
    state.push_back({std::move(type), std::move(bytes)});
  }
  return state;
}

}  // namespace

const void* contents_of(const TensorView& tensor) {
  static constexpr std::max_align_t kNoBytes{};
  if (!tensor.present() || tensor.bytes) return tensor.bytes;
  return &kNoBytes;
}

Status inside(const NodeView& node, const Status& status) {
  if (status.code() == Code::kCancelled || status.message().starts_with(node.label())) return status;
  return status.with_prefix(str_cat(node.label(), ": "));
}

Result<Outputs> run_reference(const Node& node, const OpDef& op, std::span<const TensorView> inputs,
                              std::span<const TensorType* const> declared, const OpTable& ops, const Threads& threads) {
  std::vector<const TensorType*> types;
  std::vector<const void*> data;
  for (const TensorView& view : inputs) {
    types.push_back(view.type);
    data.push_back(contents_of(view));
  }
  NodeView view(node, op, types, data, declared);
  view.set_ops(&ops);
  const AheadBudget budget;  // for all the rounds of a loop, as the types of bodies are
  const Bodies bodies(nested_nodes(node));
  view.set_threads(threads);
  PINNACE_ASSIGN(std::vector<TensorType> out_types, infer_node_types(view));
  if (!op.reference) {
    auto results = op.name == "if" ? run_if(view, inputs, ops) : run_loop(view, inputs, out_types, ops);
    if (!results.ok()) return inside(view, results.status());
    return results;
  }
  Outputs outputs;
  for (TensorType& type : out_types) {
    if (!type.concrete()) return view.error("its shape rule gives ", type, " with all inputs known");
    PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>(type.bytes()), view.label()));
    outputs.push_back({std::move(type), std::move(bytes)});
  }
  std::vector<TensorView> out;
  for (ReferenceOutput& o : outputs) out.push_back({&o.type, o.bytes.data()});
  PINNACE_TRY(compute(view, inputs, out));
  return outputs;
}

Result<Outputs> run_graph_reference(const Graph& graph, std::span<const TensorView> inputs,
                                    std::vector<ConstantPtr>* states, const OpTable& ops, const Threads& threads) {
  const DefaultFloats floats;
  // shared_ptr: a value may be an output and be read later, and a body may pass an input straight through.
  struct Slot {
    std::shared_ptr<ReferenceOutput> owned;
    TensorView view;
  };
  std::vector<Slot> slots(graph.values.size());
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& v = graph.values[i];
    if (v.constant) slots[i].view = {&v.type, const_cast<std::byte*>(v.constant->data())};
  }
  if (inputs.size() != graph.inputs.size()) {
    return invalid("graph '", graph.name, "' takes ", graph.inputs.size(), " inputs, was given ", inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) slots[graph.inputs[i]].view = inputs[i];
  for (size_t i = 0; i < graph.states.size(); ++i) {
    const State& s = graph.states[i];
    const ConstantPtr& now = states && i < states->size() ? (*states)[i] : s.initial;
    slots[s.input].view = {&graph.value(s.input).type, const_cast<std::byte*>(now->data())};
  }
  for (const auto& node : graph.nodes) {
    const OpDef* op = ops.find(node->op);
    if (!op) return unsupported("operator ", node->op, " (node '", node->name, "') is not in this build");
    std::vector<TensorView> in;
    std::vector<const TensorType*> declared;
    for (ValueId id : node->inputs) in.push_back(id == kNoValue ? TensorView{} : slots[id].view);
    for (ValueId id : node->outputs) declared.push_back(&graph.value(id).type);
    auto out = run_reference(*node, *op, in, declared, ops, threads);
    if (!out) return with_source(out.status(), *node);
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      Slot& slot = slots[node->outputs[i]];
      slot.owned = std::make_shared<ReferenceOutput>(std::move((*out)[i]));
      slot.view = {&slot.owned->type, slot.owned->bytes.data()};
    }
  }
  const auto copy_out = [&](ValueId id) -> Result<ReferenceOutput> {
    const TensorView& from = slots[id].view;
    PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>(from.type->bytes()), "an output"));
    if (bytes.size()) std::memcpy(bytes.data(), from.bytes, bytes.size());
    return ReferenceOutput{*from.type, std::move(bytes)};
  };
  Outputs outputs;
  for (ValueId id : graph.outputs) {
    PINNACE_ASSIGN(ReferenceOutput copy, copy_out(id));
    outputs.push_back(std::move(copy));
  }
  if (states) {
    std::vector<ConstantPtr> next;
    for (const State& s : graph.states) {
      PINNACE_ASSIGN(ReferenceOutput copy, copy_out(s.output));
      next.push_back(Constant::of(std::move(copy.bytes)));
    }
    *states = std::move(next);
  }
  return outputs;
}

}  // namespace pinnace
