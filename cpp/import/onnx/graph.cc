// Graphs of the source: names, initialisers, nodes, nested graphs, function calls.
#include <algorithm>
#include <set>
#include <string_view>

#include "base/cancel.h"
#include "import/onnx/mapping.h"
#include "import/onnx/order.h"
#include "ops/bodies.h"

namespace pinnace::onnx {
namespace {
template <class... Parts>
Status corrupt(const char* rule, const Parts&... parts) {
  return Status(Code::kCorruptFile, str_cat(parts...)).with_rule(rule);
}

void grow(GraphBuilder& b) {
  b.state.types.resize(b.graph.values.size());
  b.state.data.resize(b.graph.values.size());
  b.state.known.resize(b.graph.values.size());
}

std::string qualified(const proto::NodeProto& node) {
  const std::string domain = canonical_domain(node.domain());
  return str_cat(domain.empty() ? "ai.onnx" : domain, ".", node.op_type());
}
}  // namespace

std::string canonical_domain(const std::string& domain) {
  return domain == "ai.onnx" ? "" : domain;
}

std::string function_key(const std::string& domain, const std::string& name, const std::string& overload) {
  return str_cat(canonical_domain(domain), ":", name, ":", overload);
}

ValueId GraphBuilder::add_input(std::string name, TensorType type) {
  const ValueId id = graph.add_input(std::move(name), type);
  grow(*this);
  state.types[static_cast<size_t>(id)] = std::move(type);
  return id;
}

ValueId GraphBuilder::add_constant(std::string name, TensorType type, ConstantPtr data) {
  const ValueId id = graph.add_constant(std::move(name), type, data);
  grow(*this);
  state.types[static_cast<size_t>(id)] = std::move(type);
  state.data[static_cast<size_t>(id)] = std::move(data);
  return id;
}

ValueId GraphBuilder::capture(const GraphBuilder& from, ValueId id, const std::string& name) {
  if (is_listed(id)) {
    Listed list = import.list(id);
    for (size_t i = 0; i < list.elements.size(); ++i) {
      list.elements[i] = capture(from, list.elements[i], str_cat(name, "/", i));
    }
    return import.add_list(std::move(list));
  }
  if (from.data(id)) return add_constant(name, from.type(id), from.data(id));
  const ValueId inner = add_input(name, from.type(id));
  captures.emplace_back(id, inner);
  return inner;
}

Status GraphBuilder::infer_last(const Node& node) {
  PINNACE_TRY(infer_into_what_may_fail(graph, node, state, import.options.ops));
  for (ValueId id : node.outputs) graph.value(id).type = type(id);
  return {};
}

// ----------------------------------------------------------------------------------------------------------- names

Status Scope::define(const std::string& name, ValueId id) {
  if (name.empty()) return {};
  if (names.emplace(name, id).second) return {};
  return corrupt("O-21", "value '", name, "' is made twice");
}

const ValueId* Scope::look_up(const std::string& name) {
  const auto at = names.find(name);
  if (at != names.end()) return &at->second;
  if (!outer) return nullptr;
  const ValueId* found = outer->look_up(name);
  if (!found) return nullptr;
  ValueId id = *found;
  if (&outer->builder != &builder && (id >= 0 || is_listed(id))) id = builder.capture(outer->builder, id, name);
  return &names.emplace(name, id).first->second;
}

Result<ValueId> Scope::find(const std::string& name, const std::string& reader) {
  if (name.empty()) return kNoValue;
  if (const ValueId* id = look_up(name)) {
    if (builder.import.listed <= kMaxListed) return *id;
    return corrupt("O-23", "sequences of the model have more than ", kMaxListed, " elements in all");
  }
  return corrupt("O-20", reader, " reads '", name, "', which no input, initialiser or node makes");
}

// ---------------------------------------------------------------------------------------------------------- graphs

namespace {

/// Names that nodes of the graph read, those of graphs within it too, and its outputs.
void add_read_names(const proto::GraphProto& graph, std::set<std::string_view>& names) {
  for (const auto& output : graph.output()) names.insert(output.name());
  for (const auto& node : graph.node()) {
    names.insert(node.input().begin(), node.input().end());
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) add_read_names(attribute.g(), names);
      for (const auto& inner : attribute.graphs()) add_read_names(inner, names);
    }
  }
}

}  // namespace

Status import_initializers(Scope& scope, const proto::GraphProto& graph) {
  Import& import = scope.builder.import;
  std::set<std::string_view> read_names;  // looked for when one cannot be read: nothing may need it
  const auto add = [&](const std::string& name, auto&& read) -> Status {
    if (scope.names.contains(name)) return corrupt("O-21", "initialiser '", name, "' is defined twice");
    PINNACE_TRY(check_stopped(str_cat("initialiser '", name, "'")));
    Result<Tensor> tensor = read(str_cat("initialiser '", name, "'"));
    if (!tensor.ok() && tensor.status().code() != Code::kUnsupported) return tensor.status();
    if (!tensor.ok()) {
      if (read_names.empty()) add_read_names(graph, read_names);
      if (read_names.contains(name)) import.refuse(name, "initializer", {}, tensor.status().message());
      return scope.define(name, kPoisoned);
    }
    return scope.define(
        name, scope.builder.add_constant(scope.frame.prefix + name, std::move(tensor->type), std::move(tensor->data)));
  };
  for (const auto& sparse : graph.sparse_initializer()) {
    PINNACE_TRY(add(sparse.values().name(), [&](const std::string& what) {
      return read_sparse(sparse, what, import.external, import.sparse_budget);
    }));
  }
  for (const auto& tensor : graph.initializer()) {
    PINNACE_TRY(
        add(tensor.name(), [&](const std::string& what) { return read_tensor(tensor, what, import.external); }));
  }
  return {};
}

Result<std::unique_ptr<GraphBuilder>> import_body(Scope& outer, const proto::GraphProto& body, const Bind& bind) {
  auto builder = std::make_unique<GraphBuilder>(outer.builder.import);
  builder->graph.name = body.name();
  Scope scope{*builder, outer.frame, &outer, {}};
  PINNACE_TRY(bind(*builder, scope));
  PINNACE_TRY(import_initializers(scope, body));
  PINNACE_TRY(import_nodes(scope, body.node(), names_of(body.output())));
  bool poisoned = false;
  for (const auto& output : body.output()) {
    PINNACE_ASSIGN(const ValueId id, scope.find(output.name(), str_cat("graph '", body.name(), "'")));
    if (id == kNoValue) return corrupt("O-20", "graph '", body.name(), "' has an output without a name");
    if (is_listed(id)) {
      builder->import.refuse(output.name(), "output", {}, kOnlyTensorsLeave,
                             builder->import.list(id).optional ? "an optional value" : "a sequence");
    }
    if (id == kPoisoned || is_listed(id)) poisoned = true;
    builder->graph.add_output(output.name(), id);
  }
  if (poisoned) builder.reset();
  return builder;
}

std::vector<std::string_view> names_of(const google::protobuf::RepeatedPtrField<proto::ValueInfoProto>& values) {
  std::vector<std::string_view> names;
  for (const auto& value : values) names.push_back(value.name());
  return names;
}

Status import_nodes(Scope& scope, const google::protobuf::RepeatedPtrField<proto::NodeProto>& nodes,
                    std::span<const std::string_view> leaving) {
  PINNACE_ASSIGN(const std::vector<int> order, node_order(nodes));
  std::vector<NodeProblem>& problems = scope.builder.import.problems;
  std::vector<bool> needed;  // looked for when one cannot be imported: nothing may need it
  for (int i : order) {
    PINNACE_TRY(check_stopped(str_cat(nodes[i].op_type(), " '", nodes[i].name(), "'")));
    const auto before = static_cast<std::ptrdiff_t>(problems.size());
    PINNACE_TRY(import_node(scope, nodes[i], i));
    if (static_cast<std::ptrdiff_t>(problems.size()) == before) continue;
    if (needed.empty()) needed = needed_nodes(nodes, order, leaving);
    if (!needed[static_cast<size_t>(i)]) problems.erase(problems.begin() + before, problems.end());
  }
  return {};
}

// ----------------------------------------------------------------------------------------------------------- nodes

namespace {
Status inline_call(Scope& scope, const proto::FunctionProto& function, const SourceNode& call) {
  for (const Frame* f = &scope.frame; f; f = f->caller) {
    if (f->function == &function) return refuse("functions that call themselves are not supported", function.name());
  }
  Frame frame;
  frame.prefix = call.name() + "/";
  frame.caller = &scope.frame;
  frame.function = &function;
  frame.opsets = scope.frame.opsets;
  for (const auto& set : function.opset_import()) frame.opsets[canonical_domain(set.domain())] = set.version();
  for (const auto& a : function.attribute_proto()) frame.attributes[a.name()] = &a;
  for (const auto& a : call.proto().attribute()) {
    if (const auto* resolved = call.attr(a.name())) frame.attributes[a.name()] = resolved;
  }
  if (call.input_count() > function.input_size()) {
    return refuse(str_cat("the function takes ", function.input_size(), " inputs"), str_cat(call.input_count()));
  }
  if (call.output_count() > function.output_size()) {
    return refuse(str_cat("the function has ", function.output_size(), " outputs"), str_cat(call.output_count()));
  }
  Scope inner{scope.builder, frame, nullptr, {}};
  for (int i = 0; i < function.input_size(); ++i) PINNACE_TRY(inner.define(function.input(i), call.in(i)));
  const std::vector<std::string_view> leaving(function.output().begin(), function.output().end());
  PINNACE_TRY(import_nodes(inner, function.node(), leaving));
  for (int i = 0; i < call.output_count(); ++i) {
    if (!call.wants(i)) continue;
    PINNACE_ASSIGN(const ValueId id, inner.find(function.output(i), str_cat("function '", function.name(), "'")));
    PINNACE_TRY(scope.define(call.proto().output(i), id));
  }
  return {};
}

/// Maps one node of a domain other than ours: an operator of the application.
Status map_custom(SourceNode& node, const OpDef& op) {
  Attrs attrs;
  using A = proto::AttributeProto;
  for (const auto& [own_name, a] : node.attributes()) {
    switch (a->type()) {
      case A::INT:
        attrs.emplace_back(std::string(own_name), a->i());
        break;
      case A::FLOAT:
        attrs.emplace_back(std::string(own_name), static_cast<double>(a->f()));
        break;
      case A::STRING:
        attrs.emplace_back(std::string(own_name), a->s());
        break;
      case A::INTS:
        attrs.emplace_back(std::string(own_name), std::vector<int64_t>(a->ints().begin(), a->ints().end()));
        break;
      case A::FLOATS:
        attrs.emplace_back(std::string(own_name), std::vector<double>(a->floats().begin(), a->floats().end()));
        break;
      case A::STRINGS:
        attrs.emplace_back(std::string(own_name), std::vector<std::string>(a->strings().begin(), a->strings().end()));
        break;
      default:
        return refuse("attributes of an application's operator are numbers and strings", std::string(own_name));
    }
  }
  return node.finish(op.name, node.inputs(), std::move(attrs));
}

Status map_node(Scope& scope, SourceNode& node, bool checked_only) {
  Import& import = scope.builder.import;
  const proto::NodeProto& proto = node.proto();
  const auto function = import.functions.find(function_key(proto.domain(), proto.op_type(), proto.overload()));
  if (function != import.functions.end()) return checked_only ? Status() : inline_call(scope, *function->second, node);
  const std::string domain = canonical_domain(proto.domain());
  const MapFn map = domain.empty() ? find_mapping(proto.op_type()) : nullptr;
  const auto listed = std::find_if(node.inputs().begin(), node.inputs().end(), is_listed);
  if (listed != node.inputs().end() && !(map && takes_listed(map))) {
    return refuse("sequences and optional values are not supported as its inputs, only tensors",
                  proto.input(static_cast<int>(listed - node.inputs().begin())));
  }
  if (domain == "ai.onnx.preview" && proto.op_type() == "FlexAttention") {
    return checked_only ? Status() : map_flex_attention(node);
  }
  if (!domain.empty()) {
    const OpDef* op = import.options.ops.find(str_cat(domain, ".", proto.op_type()));
    if (!op && domain == "com.microsoft") {
      if (const MapFn own = find_microsoft_mapping(proto.op_type())) return checked_only ? Status() : own(node);
      return refuse("operator of onnxruntime's own is not supported", proto.op_type());
    }
    if (!op) return refuse("domain has no operators in this build", domain);
    return checked_only ? Status() : map_custom(node, *op);
  }
  if (!map) return refuse("operator is not one of ONNX", proto.op_type());
  if (node.opset() < kOldestOpset && !unchanged_since(proto.op_type(), node.opset())) {
    return refuse(
        str_cat("its form of opset ", node.opset(), " is older than ", kOldestOpset, ", the oldest that is read"),
        proto.op_type());
  }
  if (!checked_only) return map(node);
  // The node reads what could not be imported, so nothing is known of its inputs; whether there is such an operator is.
  if (map == map_generic) return node.find(snake_case(proto.op_type())).status();
  if (map == map_random || map == map_absent) return map(node);
  return {};
}

/// Status of a node whose nested graphs could not be imported; the reasons are already in the list.
bool already_recorded(const Status& status) {
  return status.code() == Code::kConversion;
}
}  // namespace

Status import_node(Scope& scope, const proto::NodeProto& proto, int index) {
  Import& import = scope.builder.import;
  if (++import.nodes > import.node_limit) {
    return corrupt("O-23", "calls of functions and loops multiply the model beyond ", import.node_limit, " nodes");
  }
  const std::string own = proto.name().empty() ? str_cat(proto.op_type(), "_", index) : proto.name();
  const std::string name = scope.frame.prefix + own;
  const auto opset = scope.frame.opsets.find(canonical_domain(proto.domain()));
  std::vector<ValueId> inputs;
  bool poisoned = false;
  for (const std::string& input : proto.input()) {
    PINNACE_ASSIGN(const ValueId id, scope.find(input, str_cat("node '", name, "'")));
    poisoned |= id == kPoisoned;
    inputs.push_back(id);
  }
  SourceNode node(scope, proto, name, opset == scope.frame.opsets.end() ? 0 : opset->second, std::move(inputs));
  Status status = map_node(scope, node, poisoned);
  if ((status.ok() && !poisoned) || status.code() == Code::kCancelled) return status;
  if (status.code() == Code::kCorruptFile || status.code() == Code::kOutOfMemory || status.code() == Code::kFile) {
    return status.with_prefix(str_cat("node '", name, "': "));
  }
  if (!status.ok() && !already_recorded(status)) {
    NodeProblem problem = status.nodes().empty() ? NodeProblem{{}, {}, {}, status.message(), {}} : status.nodes()[0];
    import.refuse(name, qualified(proto), source_of(proto), problem.rule, problem.value);
  }
  for (const std::string& output : proto.output()) {
    if (!output.empty()) scope.names[output] = kPoisoned;
  }
  return {};
}

}  // namespace pinnace::onnx
