// Builder: names, constants, emission of nodes, reading and writing tensors that share memory.
#include "import/torch/builder.h"

#include <algorithm>

#include "import/torch/exported/module_names.h"
#include "import/torch/mapping.h"
#include "import/torch/views.h"
#include "ops/bodies.h"

namespace pinnace::torch_import {
namespace {

constexpr size_t kMostSharedBytes = 64 << 10;
constexpr uint64_t kFreeTableBytes = 16 << 20;

bool is_default(const OpDef& op, const std::string& name, const Attr& value) {
  for (const AttrDef& def : op.attrs) {
    if (std::string_view(def.name) != name) continue;
    if (def.required) return false;
    switch (attr_kind(value)) {
      case AttrKind::kInt:
        return def.kind == AttrKind::kInt && std::get<int64_t>(value) == def.int_default();
      case AttrKind::kFloat:
        return def.kind == AttrKind::kFloat && std::get<double>(value) == def.float_default();
      case AttrKind::kString:
        return def.kind == AttrKind::kString && std::get<std::string>(value) == def.string_default();
      case AttrKind::kInts:
        return std::get<std::vector<int64_t>>(value).empty();
      case AttrKind::kFloats:
        return std::get<std::vector<double>>(value).empty();
      case AttrKind::kStrings:
        return std::get<std::vector<std::string>>(value).empty();
      case AttrKind::kGraph:
        return false;
    }
  }
  return false;
}

}  // namespace

// ------------------------------------------------------------------------------------------------------------- sizes

Result<const Expression*> Session::expression(const std::string& text) {
  auto at = expressions.find(text);
  if (at == expressions.end()) {
    PINNACE_ASSIGN(Expression parsed, parse_expression(text));
    at = expressions.emplace(text, std::move(parsed)).first;
  }
  return &at->second;
}

Dim Session::dim(const SizeDef& size) {
  if (size.expression.empty()) return size.value >= 0 ? Dim(size.value) : Dim();
  const auto parsed = expression(size.expression);
  if (!parsed) return {};
  if ((*parsed)->is_integer()) return (*parsed)->integer >= 0 ? Dim((*parsed)->integer) : Dim();
  const std::string name = (*parsed)->text();
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i].name == name) return Dim::of_symbol(static_cast<int32_t>(i));
  }
  return {};
}

Result<Dim> Session::input_dim(const SizeDef& size) {
  if (size.expression.empty()) {
    if (size.value < 0) return Status(Code::kCorruptFile, str_cat("an input has a size of ", size.value));
    return Dim(size.value);
  }
  PINNACE_ASSIGN(const Expression* parsed, expression(size.expression));
  if (parsed->is_integer() && parsed->integer >= 0) return Dim(parsed->integer);
  if (const Dim known = dim(size); known.symbol >= 0) return known;
  const auto range_named = [&](std::string_view name) -> Interval {
    Interval range{0, INT64_MAX};
    if (const auto at = program.ranges.find(name); at != program.ranges.end()) range = {at->second.min, at->second.max};
    for (const Symbol& wanted : options.symbols) {
      if (wanted.name == name) range = {std::max(range.min, wanted.min), std::min(range.max, wanted.max)};
    }
    return range;
  };
  Symbol symbol;
  symbol.name = parsed->text();
  symbol.multiple_of = parsed->is_symbol() ? 1 : parsed->factor();
  // torch.export traces with every symbol at least 2 and says so of a symbol that nobody has given a range, such as s
  // of 2*s. Where it states the range of 2*s itself, as for Dims with a multiple_of, that is the one that holds.
  const bool stated = !parsed->is_symbol() && program.ranges.contains(symbol.name);
  Interval range = range_of(*parsed, [&](std::string_view name) -> Interval {
    const Interval each = range_named(name);
    const bool asked = std::any_of(options.symbols.begin(), options.symbols.end(),
                                   [&](const Symbol& wanted) { return wanted.name == name; });
    return stated && !asked && each.min == 2 ? Interval{0, each.max} : each;
  });
  const Interval own = range_named(symbol.name);
  range = {std::max(range.min, own.min), std::min(range.max, own.max)};
  for (const Symbol& wanted : options.symbols) {
    if (wanted.name == symbol.name && wanted.multiple_of > 1) symbol.multiple_of = wanted.multiple_of;
  }
  if (range.min > range.max) {
    return invalid("symbol ", symbol.name, ": no size satisfies both the archive's range and the one asked for");
  }
  if (range.min == range.max) return Dim(range.min);
  symbol.min = range.min;
  symbol.max = range.max == INT64_MAX ? Symbol::kUnbounded : range.max;
  symbols.push_back(std::move(symbol));
  return Dim::of_symbol(static_cast<int32_t>(symbols.size() - 1));
}

void Session::note(std::string text) {
  if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(std::move(text));
}

// ------------------------------------------------------------------------------------------------------------- nodes

Result<std::vector<ValueId>> Builder::emit(std::string_view op, std::vector<ValueId> inputs, int outputs,
                                           std::vector<std::pair<std::string, Attr>> attrs, const std::string& name,
                                           const SourceLocation& source) {
  const OpDef* def = session.options.ops.find(op);
  if (!def) return unsupported("operator ", op, " is not in this build");
  std::vector<ValueId> made;
  for (int i = 0; i < outputs; ++i) made.push_back(graph.add_value(name, {}));
  Node* node = graph.add_node(std::string(op), def->version, name, std::move(inputs), made);
  node->source = source;
  node->source.file = session.program.files.stored_name(source.file);
  for (auto& [key, value] : attrs) {
    if (!is_default(*def, key, value)) node->set_attr(key, std::move(value));
  }
  const Status inferred = infer_into_what_may_fail(graph, *node, type_inference, session.options.ops);
  PINNACE_TRY(name_symbols(inferred, session.symbols));
  return made;
}

Result<ValueId> Builder::constant(DType dtype, const Shape& shape, const void* data, size_t bytes,
                                  const std::string& name) {
  std::string key;
  if (bytes <= kMostSharedBytes) {
    key = str_cat(static_cast<int>(dtype), ":");
    for (const Dim& d : shape) append_text(key, str_cat(d.size, ","));
    key.append(static_cast<const char*>(data), bytes);
    const auto at = constants_.find(key);
    if (at != constants_.end()) return at->second;
  }
  const uint64_t most = kFreeTableBytes + 2 * session.parts.bytes();
  if (bytes > most || session.table_bytes > most - bytes) {
    return unsupported("tables of indices and other constants that the operators ask for take more than ", most,
                       " bytes in all");
  }
  session.table_bytes += bytes;
  PINNACE_ASSIGN(ConstantPtr content, Constant::copy_of(data, bytes));
  const ValueId id = graph.add_constant(name, TensorType{dtype, shape, nullptr}, std::move(content));
  type_inference.types.resize(graph.values.size());
  type_inference.data.resize(graph.values.size());
  type_inference.known.resize(graph.values.size());
  type_inference.types[static_cast<size_t>(id)] = graph.value(id).type;
  type_inference.data[static_cast<size_t>(id)] = graph.value(id).constant;
  if (!key.empty()) constants_.emplace(std::move(key), id);
  return id;
}

void Scope::begin(const GraphDef& graph, const std::string& before_names) {
  def = &graph;
  prefix = before_names;
  module_names = torch_import::module_names(graph);
}

const std::string& Scope::name_of(const NodeDef& node) const {
  // A write into a view of another graph's tensor is mapped in that graph's scope.
  const NodeDef* first = def->nodes.data();
  if (std::less<>()(&node, first) || !std::less<>()(&node, first + def->nodes.size())) return node.name;
  const std::string& by_module = module_names[static_cast<size_t>(&node - first)];
  return by_module.empty() ? node.name : by_module;
}

std::string Scope::part_name(const NodeDef& node, std::string_view part) const {
  const std::string& made = name_of(node);
  const bool whole_module = &made != &node.name && made.find(':') == std::string::npos;
  return str_cat(prefix, made, whole_module ? ":" : ".", part);
}

std::string Scope::value_name(const NodeDef& node, const std::string& name, size_t output, size_t outputs) const {
  if (&name_of(node) == &node.name) return prefix + name;
  return outputs == 1 ? prefix + name_of(node) : part_name(node, str_cat(output));
}

void Builder::note_name(ValueId id, size_t first_value, const std::string& name, const std::string& node_name) {
  if (id == kNoValue || static_cast<size_t>(id) < first_value || graph.value(id).constant) return;
  source_names_.values.insert_or_assign(id, name);
  if (graph.nodes.empty()) return;
  const Node& last = *graph.nodes.back();
  const bool makes = std::find(last.outputs.begin(), last.outputs.end(), id) != last.outputs.end();
  if (makes) source_names_.nodes.try_emplace(&last, node_name);
}

// ------------------------------------------------------------------------------------------------- shared memory

int Builder::add_handle(Handle handle) {
  const int index = static_cast<int>(handles_.size());
  handles_.push_back(std::move(handle));
  if (handles_.back().root < 0) handles_.back().root = index;
  return index;
}

Result<ValueId> Builder::load(Handle& h) {
  const InputSpec& spec = session.program.inputs[static_cast<size_t>(h.input)];
  const bool weight =
      spec.kind == InputSpec::Kind::kParameter || (spec.kind == InputSpec::Kind::kBuffer && spec.persistent);
  const Payloads& payloads = weight ? session.weights : session.constants;
  const auto at = payloads.find(spec.target);
  if (at == payloads.end()) {
    return Status(Code::kCorruptFile,
                  str_cat("'", spec.target, "' is not among the archive's ", weight ? "weights" : "constants"));
  }
  TensorType type;
  PINNACE_ASSIGN(ConstantPtr bytes, load_payload(session, spec.target, at->second, type));
  const auto stated = session.program.graph.tensors.find(spec.argument);
  if (stated != session.program.graph.tensors.end()) {
    const TensorMeta& said = stated->second;
    bool same = (h.complex ? said.part_dtype() : said.dtype()) == type.dtype &&
                said.sizes.size() + (h.complex ? 1 : 0) == type.shape.size();
    for (size_t i = 0; same && i < said.sizes.size(); ++i) same = session.dim(said.sizes[i]) == type.shape[i];
    if (!same) {
      return Status(Code::kCorruptFile, str_cat("'", spec.target, "' is ", to_string(type),
                                                ", which is not what the graph says of ", spec.argument));
    }
  }
  if (h.origin == Handle::Origin::kState) {
    // What it starts with stays: running the source model may write to it.
    if (session.parts.lent()) {
      PINNACE_ASSIGN(bytes, Constant::copy_of(bytes->data(), bytes->bytes()));
    }
    const ValueId id = graph.add_value(spec.target, type);
    graph.states.push_back({spec.target, id, kNoValue, std::move(bytes)});
    return id;
  }
  return graph.add_constant(spec.target, std::move(type), std::move(bytes));
}

Result<ValueId> Builder::read(int index) {
  Handle& h = handle(index);
  if (h.missing) return unsupported("made by a node that is not supported");
  if (h.value == kNoValue && h.input >= 0) {
    auto loaded = load(h);
    if (!loaded) {
      const Code code = loaded.status().code();
      if ((code == Code::kCorruptFile || code == Code::kOutOfMemory) && session.fatal.ok())
        session.fatal = loaded.status();
      return loaded.status();
    }
    h.value = *loaded;
    type_inference.types.resize(graph.values.size());
    type_inference.data.resize(graph.values.size());
    type_inference.known.resize(graph.values.size());
    type_inference.types[static_cast<size_t>(h.value)] = graph.value(h.value).type;
    type_inference.data[static_cast<size_t>(h.value)] = graph.value(h.value).constant;
  }
  const Handle& root = handle(h.root);
  if (root.unclear)
    return invalid(
        "read after a write that may or may not have changed it: torch decides at run time whether the two share "
        "memory");
  if (h.parent < 0 || h.root == index || h.seen == root.version) {
    if (h.value == kNoValue) return invalid("this output of the operator is not available");
    return h.value;
  }
  // A view of something that was written to: it is made again from what is there now.
  if (++depth_ > 64) return invalid("views are nested more than 64 deep");
  const uint32_t version = root.version;
  if (h.sharing == Sharing::kSame) {
    auto now = read(h.parent);
    --depth_;
    if (!now) return now.status();
    h.value = *now;
    h.seen = version;
    return h.value;
  }
  const std::string_view target = std::string_view(h.node->target).substr(sizeof("torch.ops.") - 1);
  const size_t dot = target.rfind('.');
  const std::string_view op = target.substr(0, dot);
  const Mapping* mapping = has_complex(*h.scope, *h.node) ? find_complex_mapping(op) : find_mapping(op);
  if (!mapping) return invalid("a view cannot be made again");
  Call call(*this, *h.scope, *h.node, target.substr(dot + 1), mapping->parameter);
  mapping->map(call);
  --depth_;
  if (!call.ok()) return invalid(call.rule(), call.value().empty() ? "" : ": ", call.value());
  if (h.output >= call.given_outputs().size()) return invalid("a view cannot be made again");
  Handle& after = handle(index);
  after.value = call.given_outputs()[after.output];
  after.seen = version;
  return after.value;
}

Status Builder::write(int index, ValueId value, const NodeDef& node) {
  std::vector<int> chain;
  for (int at = index; chain.size() <= 64; at = handle(at).parent) {
    chain.push_back(at);
    if (handle(at).root == at) break;
  }
  const int root_index = handle(index).root;
  Handle& root = handle(root_index);
  if (chain.back() != root_index) return invalid("views are nested more than 64 deep");
  if (root.origin == Handle::Origin::kUserInput)
    return invalid("mutates an input: '", root.origin_name, "'; copy it first (x = x.clone())");
  if (root.origin == Handle::Origin::kConstant) return invalid("mutates a constant: '", root.origin_name, "'");
  if (root.sharing == Sharing::kUncertain) {
    Handle& other = handle(handle(root.parent).root);
    if (other.origin == Handle::Origin::kUserInput) return invalid("may mutate an input: '", other.origin_name, "'");
    other.unclear = true;
  }
  for (Handle& h : handles_) {
    if (h.sharing == Sharing::kUncertain && h.parent >= 0 && handle(h.parent).root == root_index) h.unclear = true;
  }
  // From the view up to the root, each parent with its part replaced. Parents are read before anything changes.
  // Up to the last view that may repeat elements it is done at once: a copy that was not written to must not win.
  std::vector<ValueId> now(chain.size());
  now[0] = value;
  size_t first = 0;
  for (size_t i = 0; i + 1 < chain.size(); ++i) {
    const Handle& view = handle(chain[i]);
    if (view.sharing == Sharing::kView && writes_by_places(*view.node)) first = i + 1;
  }
  if (first > 0) {
    std::vector<Handle> views;
    for (size_t i = first; i-- > 0;) {
      if (handle(chain[i]).complex != handle(chain[i + 1]).complex)
        return invalid("writes into a view of a complex tensor's parts, by places");
      if (handle(chain[i]).sharing != Sharing::kSame) views.push_back(handle(chain[i]));
    }
    PINNACE_ASSIGN(const ValueId base, read(chain[first]));
    Call call(*this, *views[0].scope, node, {}, {});
    if (handle(chain[first]).complex) {
      call.mark_pair(base);
      call.mark_pair(value);
    }
    write_by_places(call, views, base, value);
    if (!call.ok()) return invalid("writes into a view: ", call.rule(), call.value().empty() ? "" : ": ", call.value());
    now[first] = call.given_outputs()[0];
  }
  for (size_t i = first; i + 1 < chain.size(); ++i) {
    const Handle view = handle(chain[i]);
    if (view.sharing == Sharing::kSame) {
      now[i + 1] = now[i];
      continue;
    }
    PINNACE_ASSIGN(const ValueId base, read(chain[i + 1]));
    Call call(*this, *view.scope, *view.node, {}, {});
    if (handle(chain[i + 1]).complex) call.mark_pair(base);
    if (view.complex) call.mark_pair(now[i]);
    write_through_view(call, base, now[i], view.output);
    if (!call.ok()) return invalid("writes into a view: ", call.rule(), call.value().empty() ? "" : ": ", call.value());
    now[i + 1] = call.given_outputs()[0];
    if (!(type(now[i + 1]).dtype == type(base).dtype && type(now[i + 1]).rank() == type(base).rank())) {
      return invalid("writes into a view of another type, at ", node.name);
    }
  }
  ++root.version;
  for (size_t i = first; i < chain.size(); ++i) {  // those before are made again when they are read
    handle(chain[i]).value = now[i];
    handle(chain[i]).seen = root.version;
  }
  return {};
}

}  // namespace pinnace::torch_import
