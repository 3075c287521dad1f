// if and loop as IF and WHILE, from feature level 4 on. Bodies are lowered whole into models of their own: an operator
// that NNAPI lacks in one of them leaves the node to the runtime, which plans the bodies by themselves.
//
// A loop hands on [carried.., scans.., iteration, condition, captured.., count]. A scan is a tensor of all iterations,
// in which each writes its row.
#include <algorithm>
#include <cstring>

#include "backends/nnapi/steps/counters.h"
#include "base/hash.h"

namespace pinnace::nnapi_client {
namespace {

using enum nnapi::OperandCode;
using nnapi::Lifetime;

/// A nested graph while it is lowered.
struct Body {
  const Graph& graph;
  std::shared_ptr<const TypeInference> type_inference;
  Lowering lowering;
  std::string key;  ///< of its weights: the node, the body, and what was computed ahead in it

  const TensorType& type(ValueId id) const { return type_inference->types[static_cast<size_t>(id)]; }
};

/// `first`: the node's input that body input `first_input` is; those before it have the types `leading`, and inputs
/// from `known_from` on may be constants.
Result<Body> open(NodeLowering& n, std::string_view name, std::vector<TensorType> types, int first, int known_from) {
  const Graph& graph = n.view().attr_graph(name);
  std::vector<ConstantPtr> contents(types.size());
  for (int i = first; i < n.view().input_count(); ++i) {
    types.push_back(n.in_type(i));
    const void* data = i >= known_from ? n.view().input_data(i) : nullptr;
    contents.push_back(data ? std::make_shared<const Constant>(nullptr, data, static_cast<size_t>(n.in_type(i).bytes()))
                            : nullptr);
  }
  static const OpTable* const built_in = new OpTable;  // never destroyed: no exit-time destructors
  Result<TypeInference> found = infer_types(graph, types, contents, n.view().ops() ? *n.view().ops() : *built_in);
  if (!found) return n.refuse(Rule::kBody, str_cat(name, ": ", found.status().message()));
  auto type_inference = std::make_shared<const TypeInference>(std::move(*found));
  std::vector<LoweredValue> values(graph.values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i].type = &type_inference->types[i];
    if (!type_inference->data[i]) continue;
    values[i].constant = true;
    values[i].data = type_inference->data[i]->data();
  }
  Hasher computed;  // what nodes made of sizes; known inputs are in the key of the node around
  for (const auto& node : graph.nodes) {
    for (ValueId id : node->outputs) {
      const ConstantPtr& data = type_inference->data[static_cast<size_t>(id)];
      if (data) computed.add({static_cast<const std::byte*>(data->data()), data->bytes()});
    }
  }
  Body body{graph, type_inference, Lowering(n.feature_level(), n.lowering().dry(), std::move(values)),
            str_cat(n.lowering().key(), "/", name, "#", computed.digest())};
  body.lowering.set_key(body.key);
  body.lowering.keep(type_inference);
  return body;
}

/// The body's input `id` for input i of the node, whose operand around it is `outer`.
void add_input(NodeLowering& n, Body& body, ValueId id, int i, OperandId outer) {
  body.lowering.add_body_input(id, n.operand(outer));
  const LoweredValue& around = n.lowering().value(n.in_id(i));
  LoweredValue& v = body.lowering.value(id);
  v.least = around.least;
  v.most = around.most;
}

Status lower_nodes(NodeLowering& n, Body& body, std::string_view name) {
  for (size_t k = 0; k < body.graph.nodes.size(); ++k) {
    const Node& node = *body.graph.nodes[k];
    if (body.type_inference->computed[k]) continue;
    std::vector<const TensorType*> types, outputs;
    std::vector<const void*> data;
    bool concrete = true;
    for (ValueId id : node.inputs) {
      types.push_back(id == kNoValue ? nullptr : &body.type(id));
      data.push_back(id == kNoValue ? nullptr : body.lowering.value(id).data);
      concrete &= id == kNoValue || body.type(id).concrete();
    }
    for (ValueId id : node.outputs) {
      outputs.push_back(&body.type(id));
      concrete &= body.type(id).concrete() && !body.type_inference->asks_again[id];
    }
    const OpDef* op = n.view().ops() ? n.view().ops()->find(node.op) : find_op(node.op);
    if (!concrete || !op) return n.refuse(Rule::kOpen, str_cat(name, ": ", node.op, " '", node.name, "'"));
    NodeView view(node, *op, types, data, outputs);
    view.set_ops(n.view().ops());
    body.lowering.set_key(str_cat(body.key, "/", node.name));
    Verdict verdict;
    if (lower_node(body.lowering, view, outputs, verdict).ok()) {
      if (!verdict.rewrite.empty()) n.rewritten(verdict.rewrite);
      continue;
    }
    return n.refuse(Rule::kBody, str_cat(name, ": ", view.label(), ", ", verdict.text,
                                         verdict.value.empty() ? "" : ", is ", verdict.value, ", ", verdict.rule));
  }
  return {};
}

/// The same numbers in an operand of its own.
Result<OperandId> copied(Lowering& lowering, OperandId x, Verdict& verdict) {
  const nnapi::Operand o = lowering.model().operands[x];
  const OperandId y = lowering.add_operand({o.type, o.dims, o.scale, o.zero_point}, Lifetime::kTemporary);
  if (o.type == kTensorBool8) {
    PINNACE_TRY(lowering.add_operation(Op::LOGICAL_OR, {x, x}, {y}, verdict));
  } else if (o.type == kTensorInt32) {
    const int32_t zero = 0;
    const OperandId nothing = lowering.add_constant({kTensorInt32, {1}}, &zero, sizeof zero);
    PINNACE_TRY(lowering.add_operation(Op::ADD, {x, nothing, lowering.add_scalar(0)}, {y}, verdict));
  } else {
    const std::vector<int32_t> dims(o.dims.begin(), o.dims.end());
    const OperandId shape =
        lowering.add_constant({kTensorInt32, {static_cast<uint32_t>(dims.size())}}, dims.data(), dims.size() * 4);
    PINNACE_TRY(lowering.add_operation(Op::RESHAPE, {x, shape}, {y}, verdict));
  }
  return y;
}

/// Outputs of a body: each made by an operation, and none twice.
class Outputs {
 public:
  Outputs(NodeLowering& n, Lowering& lowering) : n_(n), lowering_(lowering) {}
  Status add(OperandId id) {
    const bool made = lowering_.model().operands[id].lifetime == Lifetime::kTemporary;
    if (!made || std::find(all_.begin(), all_.end(), id) != all_.end()) {
      PINNACE_ASSIGN(id, copied(lowering_, id, n_.verdict()));
    }
    all_.push_back(id);
    return {};
  }
  Status add_value(ValueId id) {
    PINNACE_ASSIGN(const OperandId made, lowering_.operand(id, Layout::kPlain, n_.verdict(), Int64::kExact));
    return add(made);
  }
  void finish() { lowering_.finish_body(all_); }

 private:
  NodeLowering& n_;
  Lowering& lowering_;
  std::vector<OperandId> all_;
};

/// Input i of the node as one element, [1].
Result<OperandId> single(NodeLowering& n, int i) {
  PINNACE_ASSIGN(const OperandId x, i == 0 && n.view().node().op == "loop" ? n.in_positions(i) : n.in(i));
  if (n.operand(x).dims != std::vector<uint32_t>{1}) return n.refuse(Rule::kAttribute, to_string(n.in_type(i)));
  return x;
}

/// What a body gives for an output must be what is said outside.
Status same_size(NodeLowering& n, const Body& body, ValueId id, const TensorType& wanted) {
  if (body.type(id).concrete() && body.type(id).shape == wanted.shape) return {};
  return n.refuse(Rule::kOpen, str_cat(to_string(body.type(id)), " for ", to_string(wanted)));
}

Status check_level(NodeLowering& n) {
  if (n.feature_level() < 4) {
    return n.refuse(Rule::kFeatureLevel, str_cat(n.view().node().op == "if" ? "IF" : "WHILE",
                                                 " needs feature level 4, here are ", n.feature_level()));
  }
  return {};
}

}  // namespace

Status lower_if(NodeLowering& n) {
  PINNACE_TRY(check_level(n));
  PINNACE_ASSIGN(const OperandId condition, single(n, 0));
  const auto* known = static_cast<const uint8_t*>(n.view().input_data(0));
  const std::string_view names[] = {"then_branch", "else_branch"};
  std::vector<Body> bodies;
  for (size_t i : {0, 1}) {
    const size_t taken = known ? (*known ? 0 : 1) : i;  // the other may not fit these sizes
    PINNACE_ASSIGN(Body body, open(n, names[taken], {}, 1, 1));
    bodies.push_back(std::move(body));
  }
  std::vector<OperandId> inputs = {condition, kNoOperand, kNoOperand};
  for (int i = 1; i < n.view().input_count(); ++i) {
    if (n.constant(i)) continue;  // is one in the bodies too
    PINNACE_ASSIGN(const OperandId x, n.in(i));
    inputs.push_back(x);
    for (Body& body : bodies) add_input(n, body, body.graph.inputs[static_cast<size_t>(i) - 1], i, x);
  }
  if (inputs.size() == 3) {  // every model has inputs
    inputs.push_back(condition);
    for (Body& body : bodies) body.lowering.add_body_input(kNoValue, n.operand(condition));
  }
  for (size_t i : {0, 1}) {
    Body& body = bodies[i];
    PINNACE_TRY(lower_nodes(n, body, names[i]));
    Outputs outputs(n, body.lowering);
    for (int k = 0; k < n.view().output_count(); ++k) {
      const ValueId id = body.graph.outputs[static_cast<size_t>(k)];
      PINNACE_TRY(same_size(n, body, id, n.out_type(k)));
      PINNACE_TRY(outputs.add_value(id));
    }
    outputs.finish();
    inputs[1 + i] = n.lowering().add_body(std::move(body.lowering));
  }
  std::vector<OperandId> made;
  for (int k = 0; k < n.view().output_count(); ++k) {
    PINNACE_ASSIGN(const OperandId y, n.out(k));
    made.push_back(y);
  }
  return n.add(Op::IF, std::move(inputs), std::move(made));
}

namespace {

/// Row `iteration` of `all`, [T, ..], becomes `item`; the other rows stay.
Result<OperandId> with_row(Lowering& lowering, OperandId all, OperandId item, OperandId iteration, size_t index,
                           Verdict& verdict) {
  const nnapi::Operand o = lowering.model().operands[all];
  OperandSpec spec{o.type, o.dims, o.scale, o.zero_point};
  spec.dims[0] = 1;
  if (spec.dims != lowering.model().operands[item].dims) {
    const OperandId row = lowering.add_operand(spec, Lifetime::kTemporary);
    PINNACE_TRY(lowering.add_operation(Op::EXPAND_DIMS, {item, lowering.add_scalar(0)}, {row}, verdict));
    item = row;
  }
  std::vector<int32_t> times(o.dims.size(), 1);
  times[0] = static_cast<int32_t>(o.dims[0]);
  spec.dims = o.dims;
  const OperandId rows = lowering.add_operand(spec, Lifetime::kTemporary);
  const OperandId repeats =
      lowering.add_constant({kTensorInt32, {static_cast<uint32_t>(times.size())}}, times.data(), times.size() * 4);
  PINNACE_TRY(lowering.add_operation(Op::TILE, {item, repeats}, {rows}, verdict));
  size_t row_elements = 1;
  for (size_t i = 1; i < o.dims.size(); ++i) row_elements *= o.dims[i];
  const OperandId numbers = lowering.add_weight({kTensorInt32, o.dims}, str_cat("rows", index),
                                                [row_elements, count = o.dims[0]](std::byte* to) {
                                                  auto* at = reinterpret_cast<int32_t*>(to);
                                                  for (uint32_t t = 0; t < count; ++t, at += row_elements)
                                                    std::fill_n(at, row_elements, static_cast<int32_t>(t));
                                                });
  const OperandId here = lowering.add_operand({kTensorBool8, o.dims}, Lifetime::kTemporary);
  PINNACE_TRY(lowering.add_operation(Op::EQUAL, {numbers, iteration}, {here}, verdict));
  const OperandId made = lowering.add_operand(spec, Lifetime::kTemporary);
  PINNACE_TRY(lowering.add_operation(Op::SELECT, {here, rows, all}, {made}, verdict));
  return made;
}

/// iteration < count, and the condition that the body gave.
Status finish_condition(NodeLowering& n, Lowering& lowering, OperandId iteration, OperandId condition,
                        OperandId count) {
  OperandId other = condition;
  if (count != kNoOperand) {
    other = lowering.add_operand({kTensorBool8, {1}}, Lifetime::kTemporary);
    PINNACE_TRY(lowering.add_operation(Op::LESS, {iteration, count}, {other}, n.verdict()));
  }
  const OperandId made = lowering.add_operand({kTensorBool8, {1}}, Lifetime::kTemporary);
  PINNACE_TRY(lowering.add_operation(Op::LOGICAL_AND, {other, condition}, {made}, n.verdict()));
  lowering.finish_body({&made, 1});
  return {};
}

}  // namespace

Status lower_loop(NodeLowering& n) {
  PINNACE_TRY(check_level(n));
  const auto carried = static_cast<int>(n.view().attr_int("carried"));
  const TensorType index{DType::kI64, {}, nullptr}, flag{DType::kBool, {}, nullptr};
  PINNACE_ASSIGN(Body body, open(n, "body", {index, flag}, 2, 2 + carried));
  const std::vector<ValueId>& in = body.graph.inputs;
  const std::vector<ValueId>& out = body.graph.outputs;
  const auto after = [&](int k) { return out[static_cast<size_t>(k) + 1]; };  // behind the condition

  // The state before the first iteration; at the same place, what of the body it is.
  std::vector<OperandId> state;
  for (int k = 0; k < carried; ++k) {
    PINNACE_TRY(same_size(n, body, after(k), n.in_type(2 + k)));
    PINNACE_ASSIGN(const OperandId x, n.in(2 + k));
    state.push_back(x);
    add_input(n, body, in[static_cast<size_t>(k) + 2], 2 + k, x);
    // What an iteration makes is of 32 bits, whatever the first one is given.
    body.lowering.value(in[static_cast<size_t>(k) + 2]).least = INT32_MIN;
    body.lowering.value(in[static_cast<size_t>(k) + 2]).most = INT32_MAX;
  }
  std::vector<OperandId> scans;  // of the body's model
  for (int k = carried; k < n.view().output_count(); ++k) {
    if (n.out_type(k).rank() > 4) return n.refuse(Rule::kRank, to_string(n.out_type(k)));
    OperandSpec spec;
    if (!n.lowering().specify(n.out_type(k), spec, n.verdict(), true))
      return Status(Code::kUnsupported, n.verdict().text);
    size_t bytes = nnapi::info(spec.type).bytes;
    for (uint32_t d : spec.dims) bytes *= d;
    const OperandId zeros =
        n.lowering().add_weight(spec, str_cat("scan", k), [bytes](std::byte* to) { std::memset(to, 0, bytes); });
    state.push_back(zeros);
    scans.push_back(static_cast<OperandId>(body.lowering.model().operands.size()));
    body.lowering.add_body_input(kNoValue, n.operand(zeros));
  }
  const int32_t first = 0;
  const uint8_t starts = 1;
  const OperandId iteration = n.ints({&first, 1});
  OperandId condition = kNoOperand;
  if (n.has(1)) {
    PINNACE_ASSIGN(condition, single(n, 1));
  } else {
    condition = n.lowering().add_constant({kTensorBool8, {1}}, &starts, 1);
  }
  const size_t iteration_at = state.size();
  state.insert(state.end(), {iteration, condition});
  body.lowering.add_body_input(in[0], n.operand(iteration));
  const OperandId inner_iteration = body.lowering.value(in[0]).operands[0];
  body.lowering.add_body_input(in[1], n.operand(condition));
  for (int i = 2 + carried; i < n.view().input_count(); ++i) {
    if (n.constant(i)) continue;
    PINNACE_ASSIGN(const OperandId x, n.in(i));
    state.push_back(x);
    add_input(n, body, in[static_cast<size_t>(i)], i, x);
  }
  int64_t most = INT32_MAX;
  OperandId count = kNoOperand;
  if (n.has(0)) {
    PINNACE_ASSIGN(count, single(n, 0));
    if (const auto known = n.view().input_ints(0)) most = std::clamp<int64_t>(known->at(0), 1, INT32_MAX);
    state.push_back(count);
    body.lowering.add_body_input(kNoValue, n.operand(count));
  }
  LoweredValue& i = body.lowering.value(in[0]);
  i.least = 0;
  i.most = most - 1;
  for (int k = 0; k < carried; ++k) {  // when all that conditions compare with is known
    if (n.in_type(2 + k).dtype != DType::kI64) continue;
    const ValueId counter = in[static_cast<size_t>(k) + 2];
    const Int64Range start = range_of(n.lowering().value(n.in_id(2 + k)));
    if (const auto range = counter_range(body.graph, body.lowering, counter, after(k), start, most)) {
      body.lowering.value(counter).least = range->least;
      body.lowering.value(counter).most = range->most;
    }
  }

  PINNACE_TRY(lower_nodes(n, body, "body"));
  Outputs outputs(n, body.lowering);
  for (int k = 0; k < carried; ++k) PINNACE_TRY(outputs.add_value(after(k)));
  body.lowering.set_key(body.key);
  for (int k = carried; k < n.view().output_count(); ++k) {
    PINNACE_ASSIGN(const OperandId item, body.lowering.operand(after(k), Layout::kPlain, n.verdict(), Int64::kExact));
    const auto s = static_cast<size_t>(k - carried);
    PINNACE_ASSIGN(const OperandId rows, with_row(body.lowering, scans[s], item, inner_iteration, s, n.verdict()));
    PINNACE_TRY(outputs.add(rows));
  }
  const int32_t one = 1;
  const OperandId step = body.lowering.add_constant({kTensorInt32, {1}}, &one, sizeof one);
  const OperandId next = body.lowering.add_operand({kTensorInt32, {1}}, Lifetime::kTemporary);
  PINNACE_TRY(
      body.lowering.add_operation(Op::ADD, {inner_iteration, step, body.lowering.add_scalar(0)}, {next}, n.verdict()));
  PINNACE_TRY(outputs.add(next));
  PINNACE_TRY(outputs.add_value(out[0]));
  outputs.finish();

  Lowering goes_on(n.feature_level(), n.lowering().dry(), {});
  for (OperandId id : state) goes_on.add_body_input(kNoValue, n.operand(id));
  const auto& known = goes_on.model().inputs;
  PINNACE_TRY(
      finish_condition(n, goes_on, known[iteration_at], known[iteration_at + 1], n.has(0) ? known.back() : kNoOperand));

  std::vector<OperandId> inputs = {n.lowering().add_body(std::move(goes_on)),
                                   n.lowering().add_body(std::move(body.lowering))};
  inputs.insert(inputs.end(), state.begin(), state.end());
  std::vector<OperandId> made;
  for (int k = 0; k < n.view().output_count(); ++k) {
    PINNACE_ASSIGN(const OperandId y, n.out(k));
    made.push_back(y);
  }
  return n.add(Op::WHILE, std::move(inputs), std::move(made));
}

}  // namespace pinnace::nnapi_client
