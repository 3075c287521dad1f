// If and Loop: nested graphs become self-contained, what they read from outside becomes their inputs.
#include <algorithm>
#include <optional>

#include "import/onnx/nested.h"

namespace pinnace::onnx {
namespace {
Status check_scalar(const SourceNode& node, ValueId id, DType dtype, const char* what) {
  if (id == kNoValue || (node.type(id).dtype == dtype && node.type(id).rank() == 0)) return {};
  return refuse(str_cat(what, " must be a scalar of type ", dtype_name(dtype)), to_string(node.type(id)));
}

/// The branch that is always taken, in place of the node.
Status inline_branch(SourceNode& node, const proto::GraphProto& branch) {
  if (branch.output_size() < node.output_count()) return refuse("the branch has too few outputs");
  PINNACE_ASSIGN(const std::vector<ValueId> outputs, inline_graph(node, branch, {}, node.scope().frame.prefix));
  for (int i = 0; i < node.output_count(); ++i) PINNACE_TRY(node.set_output(i, outputs[static_cast<size_t>(i)]));
  return {};
}

/// The node that makes `id`, or null.
const Node* maker(const Graph& graph, ValueId id) {
  for (const auto& node : graph.nodes) {
    if (std::find(node->outputs.begin(), node->outputs.end(), id) != node->outputs.end()) return node.get();
  }
  return nullptr;
}

/// The one integer that `id` is known to hold.
std::optional<int64_t> known_int(const GraphBuilder& b, ValueId id) {
  const TensorType& t = b.type(id);
  if (!b.data(id) || t.dtype != DType::kI64 || t.elements() != 1) return std::nullopt;
  return *reinterpret_cast<const int64_t*>(b.data(id)->data());
}

/// The dimension of x whose size `condition` compares with 1: equal(gather(shape(x), d), 1).
std::optional<int64_t> dimension_compared_with_one(const GraphBuilder& b, ValueId condition, ValueId x) {
  const Node* equal = maker(b.graph, condition);
  if (!equal || equal->op != "equal" || known_int(b, equal->inputs[1]) != 1) return std::nullopt;
  const Node* gather = maker(b.graph, equal->inputs[0]);
  if (!gather || gather->op != "gather") return std::nullopt;
  const Node* shape = maker(b.graph, gather->inputs[0]);
  if (!shape || shape->op != "shape" || shape->inputs[0] != x || !shape->attrs.empty()) return std::nullopt;
  const auto place = known_int(b, gather->inputs[1]);
  if (!place) return std::nullopt;
  return *place < 0 ? *place + b.type(x).rank() : *place;
}

/// What torch.onnx writes for squeeze(d) of a dynamic size: If the size is 1, the squeezed value, else the value
/// itself. The rank of all that follows would depend on the size. It becomes the squeeze, which refuses other sizes
/// when it runs. False if the node is something else.
Result<bool> squeeze_where_one(SourceNode& node, ValueId condition, const proto::GraphProto& then_graph,
                               const proto::GraphProto& else_graph) {
  const auto& nodes = then_graph.node();
  if (then_graph.output_size() != 1 || else_graph.output_size() != 1 || else_graph.node_size() != 1) return false;
  if (nodes.empty() || nodes.size() > 2 || then_graph.initializer_size() || else_graph.initializer_size()) return false;
  const proto::NodeProto &squeeze = nodes[nodes.size() - 1], &identity = else_graph.node(0);
  if (squeeze.op_type() != "Squeeze" || identity.op_type() != "Identity" || !squeeze.input_size()) return false;
  if (nodes.size() == 2 && nodes[0].op_type() != "Constant") return false;
  if (identity.input_size() != 1 || squeeze.input(0) != identity.input(0)) return false;
  GraphBuilder& b = node.scope().builder;
  PINNACE_ASSIGN(const ValueId x, node.scope().find(identity.input(0), node.label()));
  if (x < 0) return false;
  const auto dimension = dimension_compared_with_one(b, condition, x);
  if (!dimension) return false;
  PINNACE_TRY(inline_branch(node, then_graph));
  const Node& made = *b.graph.nodes.back();
  const auto axis = made.op == "squeeze" && made.inputs.size() == 2 ? known_int(b, made.inputs[1]) : std::nullopt;
  if (!axis || (*axis < 0 ? *axis + b.type(x).rank() : *axis) != *dimension) {
    return refuse("the branch squeezes another dimension than the one that is 1", str_cat(*dimension));
  }
  b.import.notes.push_back(str_cat(node.label(), " squeezes dimension ", *dimension,
                                   " where its size is 1: other sizes ", "are an error when the model runs."));
  return true;
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
  PINNACE_ASSIGN(const bool squeezed, squeeze_where_one(node, node.in(0), *then_graph, *else_graph));
  if (squeezed) return {};
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

}  // namespace pinnace::onnx
