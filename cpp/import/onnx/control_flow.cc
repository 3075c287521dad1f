// If, Loop and Scan: nested graphs become self-contained, what they read from outside becomes their inputs.
#include <algorithm>

#include "import/onnx/mapping.h"

namespace pinnace::onnx {
namespace {
/// What could not be imported inside has been recorded: the node itself is no further problem.
Status recorded() {
  return Status(Code::kConversion, "a nested graph cannot be imported");
}

Attr graph_of(GraphBuilder& body) {
  body.graph.compact();
  return std::make_shared<Graph>(std::move(body.graph));
}

/// Imports a loop's body, whose outputs after the first, the condition, are the carried values. Where a carried value
/// leaves the body with another size than it entered, that size becomes unknown and the body is imported again.
using BindCarried = std::function<Status(GraphBuilder&, Scope&, std::span<const TensorType> carried)>;
Result<std::unique_ptr<GraphBuilder>> import_loop_body(SourceNode& node, const proto::GraphProto& body,
                                                       std::vector<TensorType> types, const BindCarried& bind) {
  for (;;) {
    PINNACE_ASSIGN(auto builder,
                   import_body(node.scope(), body, [&](GraphBuilder& b, Scope& s) { return bind(b, s, types); }));
    if (!builder) return recorded();
    bool widened = false;
    for (size_t i = 0; i < types.size(); ++i) {
      const TensorType& after = builder->type(builder->graph.outputs[1 + i]);
      if (after.dtype != types[i].dtype || after.rank() != types[i].rank()) {
        return refuse(
            str_cat("carried value ", i, " must keep its element type and rank, enters as ", to_string(types[i])),
            to_string(after));
      }
      for (size_t d = 0; d < after.shape.size(); ++d) {
        if (after.shape[d] == types[i].shape[d] || types[i].shape[d] == Dim()) continue;
        types[i].shape[d] = Dim();
        widened = true;
      }
    }
    if (!widened) return builder;
  }
}

Status check_scalar(const SourceNode& node, ValueId id, DType dtype, const char* what) {
  if (id == kNoValue || (node.type(id).dtype == dtype && node.type(id).rank() == 0)) return {};
  return refuse(str_cat(what, " must be a scalar of type ", dtype_name(dtype)), to_string(node.type(id)));
}

/// The branch that is always taken, in place of the node.
Status inline_branch(SourceNode& node, const proto::GraphProto& branch) {
  Scope inner{node.scope().builder, node.scope().frame, &node.scope(), {}};
  PINNACE_TRY(import_initializers(inner, branch));
  PINNACE_TRY(import_nodes(inner, branch.node()));
  if (branch.output_size() < node.output_count()) return refuse("the branch has too few outputs");
  for (int i = 0; i < node.output_count(); ++i) {
    PINNACE_ASSIGN(const ValueId id, inner.find(branch.output(i).name(), node.label()));
    PINNACE_TRY(node.set_output(i, id));
  }
  return {};
}
}  // namespace

Status map_if(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(1));
  PINNACE_ASSIGN(const proto::GraphProto* then_graph, node.graph_attr("then_branch"));
  PINNACE_ASSIGN(const proto::GraphProto* else_graph, node.graph_attr("else_branch"));
  PINNACE_ASSIGN(const ValueId condition, node.as_scalar(node.in(0)));
  PINNACE_TRY(check_scalar(node, condition, DType::kBool, "the condition"));
  if (const ConstantPtr& known = node.scope().builder.data(condition)) {
    return inline_branch(node, known->data()[0] != std::byte{0} ? *then_graph : *else_graph);
  }
  const auto nothing = [](GraphBuilder&, Scope&) { return Status(); };
  PINNACE_ASSIGN(auto then_body, import_body(node.scope(), *then_graph, nothing));
  PINNACE_ASSIGN(auto else_body, import_body(node.scope(), *else_graph, nothing));
  if (!then_body || !else_body) return recorded();
  if (then_body->graph.outputs.size() != else_body->graph.outputs.size()) {
    return refuse("both branches must have the same outputs",
                  str_cat(then_body->graph.outputs.size(), " and ", else_body->graph.outputs.size()));
  }
  // Both branches take everything that either reads, in one order.
  std::vector<ValueId> captured;
  for (const auto& [outside, inside] : then_body->captures) captured.push_back(outside);
  for (const auto& [outside, inside] : else_body->captures) captured.push_back(outside);
  std::sort(captured.begin(), captured.end());
  captured.erase(std::unique(captured.begin(), captured.end()), captured.end());
  for (GraphBuilder* body : {then_body.get(), else_body.get()}) {
    std::vector<ValueId> inputs;
    for (ValueId outside : captured) {
      ValueId inside = kNoValue;
      for (const auto& [from, to] : body->captures) inside = from == outside ? to : inside;
      if (inside == kNoValue) {
        const Value& value = node.scope().builder.graph.value(outside);
        inside = body->add_input(value.name, node.type(outside));
      }
      inputs.push_back(inside);
    }
    // A value that is captured under two names is one input: the second name's readers read the first.
    for (const auto& [from, to] : body->captures) {
      const ValueId kept =
          inputs[static_cast<size_t>(std::lower_bound(captured.begin(), captured.end(), from) - captured.begin())];
      if (kept != to) body->graph.replace_uses(to, kept);
    }
    body->graph.inputs = std::move(inputs);
  }
  std::vector<ValueId> inputs = {condition};
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  const auto outputs = static_cast<int>(then_body->graph.outputs.size());
  return node.finish("if", std::move(inputs),
                     {{"then_branch", graph_of(*then_body)}, {"else_branch", graph_of(*else_body)}}, outputs);
}

Status map_loop(SourceNode& node) {
  PINNACE_ASSIGN(const proto::GraphProto* body, node.graph_attr("body"));
  const int carried = body->input_size() - 2;
  if (carried < 0 || body->output_size() < 1 + carried || std::max(node.proto().input_size(), 2) != 2 + carried) {
    return refuse(str_cat("a body for ", std::max(node.proto().input_size() - 2, 0), " carried values is needed"),
                  str_cat(body->input_size(), " inputs, ", body->output_size(), " outputs"));
  }
  std::vector<ValueId> inputs = {node.in(0), node.in(1)};
  for (ValueId& id : inputs) {
    if (id == kNoValue) continue;
    PINNACE_ASSIGN(id, node.as_scalar(id));
  }
  PINNACE_TRY(check_scalar(node, inputs[0], DType::kI64, "the trip count"));
  PINNACE_TRY(check_scalar(node, inputs[1], DType::kBool, "the condition"));
  std::vector<TensorType> types;
  for (int i = 0; i < carried; ++i) {
    if (!node.has(2 + i)) return refuse(str_cat("carried value ", i, " is missing"));
    inputs.push_back(node.in(2 + i));
    types.push_back(node.in_type(2 + i));
  }
  const auto bind = [&](GraphBuilder& b, Scope& s, std::span<const TensorType> now) -> Status {
    const TensorType first[] = {{DType::kI64, {}, nullptr}, {DType::kBool, {}, nullptr}};
    for (int i = 0; i < 2 + carried; ++i) {
      const std::string& name = body->input(i).name();
      PINNACE_TRY(s.define(name, b.add_input(name, i < 2 ? first[i] : now[static_cast<size_t>(i - 2)])));
    }
    return {};
  };
  PINNACE_ASSIGN(auto builder, import_loop_body(node, *body, std::move(types), bind));
  const ValueId again = builder->graph.outputs[0];
  if (builder->type(again).dtype != DType::kBool || builder->type(again).elements() != 1) {
    return refuse("the body's condition must be a scalar of type bool", to_string(builder->type(again)));
  }
  for (const auto& [outside, inside] : builder->captures) inputs.push_back(outside);
  return node.finish("loop", std::move(inputs), {{"carried", int64_t{carried}}, {"body", graph_of(*builder)}},
                     body->output_size() - 1);
}

namespace {
/// What a Scan says beside its body.
struct ScanForm {
  int scans = 0, states = 0;  // inputs
  std::vector<int64_t> in_axes, in_reverse, out_axes, out_reverse;
};

Result<ScanForm> scan_form(SourceNode& node, const proto::GraphProto& body) {
  ScanForm form;
  if (node.opset() < 9) return refuse("scan over a batch (opset 8) is not supported", str_cat(node.opset()));
  PINNACE_ASSIGN(const int64_t scans, node.int_attr("num_scan_inputs", 0));
  if (scans < 1 || scans > node.input_count() || body.input_size() != node.input_count()) {
    return refuse("num_scan_inputs must be at least 1 and the body have the node's inputs", str_cat(scans));
  }
  PINNACE_TRY(node.need_inputs(node.input_count()));
  form.scans = static_cast<int>(scans);
  form.states = node.input_count() - form.scans;
  const int outs = body.output_size() - form.states;
  if (outs < 0 || node.output_count() > body.output_size())
    return refuse("the body has too few outputs", str_cat(body.output_size()));
  PINNACE_ASSIGN(form.in_axes, node.ints_attr("scan_input_axes"));
  PINNACE_ASSIGN(form.in_reverse, node.ints_attr("scan_input_directions"));
  PINNACE_ASSIGN(form.out_axes, node.ints_attr("scan_output_axes"));
  PINNACE_ASSIGN(form.out_reverse, node.ints_attr("scan_output_directions"));
  for (auto* list : {&form.in_axes, &form.in_reverse}) list->resize(static_cast<size_t>(form.scans), 0);
  for (auto* list : {&form.out_axes, &form.out_reverse}) list->resize(static_cast<size_t>(outs), 0);
  for (int i = 0; i < form.scans; ++i) {
    int64_t& axis = form.in_axes[static_cast<size_t>(i)];
    const int rank = node.in_type(form.states + i).rank();
    if (axis < -rank || axis >= rank)
      return refuse(str_cat("scan_input_axes must be within rank ", rank), str_cat(axis));
    if (axis < 0) axis += rank;
  }
  return form;
}
}  // namespace

/// A loop over the scanned dimension: each pass gathers one slice of every scanned input.
Status map_scan(SourceNode& node) {
  PINNACE_ASSIGN(const proto::GraphProto* body, node.graph_attr("body"));
  PINNACE_ASSIGN(const ScanForm form, scan_form(node, *body));
  PINNACE_ASSIGN(const ValueId sizes, node.emit("shape", {node.in(form.states)}));
  PINNACE_ASSIGN(const ValueId axis, node.constant_int(form.in_axes[0]));
  PINNACE_ASSIGN(const ValueId trips, node.emit("gather", {sizes, axis}));
  PINNACE_ASSIGN(const ValueId one, node.constant_int(1));
  PINNACE_ASSIGN(const ValueId last, node.emit("sub", {trips, one}));
  std::vector<ValueId> inputs = {trips, kNoValue};
  std::vector<TensorType> types;
  for (int i = 0; i < form.states; ++i) {
    inputs.push_back(node.in(i));
    types.push_back(node.in_type(i));
  }
  GraphBuilder& outside = node.scope().builder;
  const auto bind = [&](GraphBuilder& b, Scope& s, std::span<const TensorType> now) -> Status {
    const ValueId trip = b.add_input("trip", {DType::kI64, {}, nullptr});
    const ValueId condition = b.add_input("condition", {DType::kBool, {}, nullptr});
    b.graph.add_output("condition", condition);
    for (int i = 0; i < form.states; ++i) {
      const std::string& name = body->input(i).name();
      PINNACE_TRY(s.define(name, b.add_input(name, now[static_cast<size_t>(i)])));
    }
    SourceNode item(s, node.proto(), str_cat(node.name(), "/item"), node.opset(), {});
    for (int i = 0; i < form.scans; ++i) {
      const std::string& name = body->input(form.states + i).name();
      const auto k = static_cast<size_t>(i);
      ValueId at = trip;
      if (form.in_reverse[k]) {
        PINNACE_ASSIGN(at, item.emit("sub", {b.capture(outside, last, "last"), trip}));
      }
      const ValueId all = b.capture(outside, node.in(form.states + i), name + "/all");
      PINNACE_ASSIGN(const ValueId slice, item.emit("gather", {all, at}, {{"axis", form.in_axes[k]}}));
      PINNACE_TRY(s.define(name, slice));
    }
    return {};
  };
  PINNACE_ASSIGN(auto builder, import_loop_body(node, *body, std::move(types), bind));
  for (const auto& [from, inside] : builder->captures) inputs.push_back(from);
  PINNACE_ASSIGN(
      std::vector<ValueId> results,
      node.emit_many("loop", std::move(inputs), {{"carried", int64_t{form.states}}, {"body", graph_of(*builder)}},
                     body->output_size()));
  for (int i = 0; i < node.output_count(); ++i) {
    ValueId result = results[static_cast<size_t>(i)];
    if (const int k = i - form.states; k >= 0 && form.out_reverse[static_cast<size_t>(k)]) {
      PINNACE_ASSIGN(const ValueId from, node.constant_ints(std::vector<int64_t>{-1}));
      PINNACE_ASSIGN(const ValueId to, node.constant_ints(std::vector<int64_t>{INT64_MIN}));
      PINNACE_ASSIGN(const ValueId zero, node.constant_ints(std::vector<int64_t>{0}));
      PINNACE_ASSIGN(result, node.emit("slice", {result, from, to, zero, from}));
    }
    if (const int k = i - form.states; k >= 0 && form.out_axes[static_cast<size_t>(k)] != 0) {
      const int rank = node.type(result).rank();
      int64_t to = form.out_axes[static_cast<size_t>(k)];
      if (to < -rank || to >= rank) return refuse(str_cat("scan_output_axes must be within rank ", rank), str_cat(to));
      if (to < 0) to += rank;
      std::vector<int64_t> perm;  // dimension 0 goes to place `to`
      for (int64_t d = 1; d < rank; ++d) perm.push_back(d);
      perm.insert(perm.begin() + to, 0);
      PINNACE_ASSIGN(result, node.emit("transpose", {result}, {{"perm", std::move(perm)}}));
    }
    PINNACE_TRY(node.set_output(i, result));
  }
  return {};
}

}  // namespace pinnace::onnx
