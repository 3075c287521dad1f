// Graph: construction, copying, replacing and compaction; Uses.
#include "graph/graph.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

namespace pinnace {

ConstantPtr Constant::of(Buffer buffer) {
  auto owner = std::make_shared<Buffer>(std::move(buffer));
  const void* data = owner->data();
  const size_t bytes = owner->size();
  return std::make_shared<const Constant>(std::move(owner), data, bytes);
}

Result<ConstantPtr> Constant::copy_of(const void* data, size_t bytes) {
  PINNACE_ASSIGN(Buffer buffer, Buffer::allocate(bytes, "a constant"));
  if (bytes) std::memcpy(buffer.data(), data, bytes);
  return of(std::move(buffer));
}

const char* attr_kind_name(AttrKind kind) {
  constexpr const char* kNames[] = {"int", "float", "string", "ints", "floats", "strings", "graph"};
  return kNames[static_cast<int>(kind)];
}

std::string SourceLocation::text() const {
  if (file.empty()) return {};
  return line > 0 ? str_cat(file, ":", line) : file;
}

const Attr* Node::attr(std::string_view key) const {
  for (const auto& [name, value] : attrs) {
    if (name == key) return &value;
  }
  return nullptr;
}

Attr* Node::attr(std::string_view key) {
  return const_cast<Attr*>(std::as_const(*this).attr(key));
}

void Node::set_attr(std::string_view key, Attr value) {
  const auto at = std::lower_bound(attrs.begin(), attrs.end(), key,
                                   [](const auto& entry, std::string_view wanted) { return entry.first < wanted; });
  if (at != attrs.end() && at->first == key) {
    at->second = std::move(value);
  } else {
    attrs.emplace(at, std::string(key), std::move(value));
  }
}

void Node::remove_attr(std::string_view key) {
  std::erase_if(attrs, [&](const auto& entry) { return entry.first == key; });
}

Status check_constants(const Graph& graph) {
  for (const Value& v : graph.values) {
    if (v.constant) PINNACE_TRY(v.constant->check());
  }
  for (const State& s : graph.states) PINNACE_TRY(s.initial->check());
  for (const auto& node : graph.nodes) {
    for (const auto& [name, attr] : node->attrs) {
      if (const auto* nested = std::get_if<GraphPtr>(&attr)) PINNACE_TRY(check_constants(**nested));
    }
  }
  return {};
}

struct Graph::Names {
  std::unordered_set<std::string> values, nodes;
  size_t value_count = 0, node_count = 0;  // how much of the graph the sets cover
  int64_t next = 0;                        // number to append to the next taken name
};

Graph Graph::clone() const {
  Graph copy;
  copy.name = name;
  copy.symbols = symbols;
  copy.values = values;
  copy.inputs = inputs;
  copy.outputs = outputs;
  copy.output_names = output_names;
  copy.states = states;
  copy.nodes.reserve(nodes.size());
  for (const auto& node : nodes) {
    auto twin = std::make_unique<Node>(*node);
    for (auto& [key, attr] : twin->attrs) {
      if (auto* body = std::get_if<GraphPtr>(&attr)) *body = std::make_shared<Graph>((*body)->clone());
    }
    copy.nodes.push_back(std::move(twin));
  }
  return copy;
}

bool Graph::has_value_name(std::string_view wanted) const {
  return std::any_of(values.begin(), values.end(), [&](const Value& v) { return v.name == wanted; });
}

bool Graph::has_node_name(std::string_view wanted) const {
  return std::any_of(nodes.begin(), nodes.end(), [&](const auto& n) { return n->name == wanted; });
}

std::string Graph::unique_name(std::string wanted, bool of_node) {
  // Passes rename and erase freely, so the sets may hold names that are gone (harmless) but must not miss one that
  // exists: they are rebuilt whenever the graph's sizes are not what this function left behind.
  if (!names_ || names_->value_count != values.size() || names_->node_count != nodes.size()) {
    const int64_t next = names_ ? names_->next : 0;
    names_ = std::make_shared<Names>();
    names_->next = next;
    for (const Value& v : values) names_->values.insert(v.name);
    for (const auto& n : nodes) names_->nodes.insert(n->name);
    names_->value_count = values.size();
    names_->node_count = nodes.size();
  }
  auto& taken = of_node ? names_->nodes : names_->values;
  if (wanted.empty()) wanted = of_node ? "node" : "value";
  std::string candidate = wanted;
  while (!taken.insert(candidate).second) candidate = str_cat(wanted, "_", ++names_->next);
  ++(of_node ? names_->node_count : names_->value_count);  // the caller adds exactly one
  return candidate;
}

ValueId Graph::add_value(std::string wanted, TensorType type) {
  std::string unique = unique_name(std::move(wanted), false);
  values.push_back(Value{std::move(unique), std::move(type), nullptr});
  return static_cast<ValueId>(values.size() - 1);
}

ValueId Graph::add_input(std::string wanted, TensorType type) {
  const ValueId id = add_value(std::move(wanted), std::move(type));
  inputs.push_back(id);
  return id;
}

ValueId Graph::add_constant(std::string wanted, TensorType type, ConstantPtr bytes) {
  const ValueId id = add_value(std::move(wanted), std::move(type));
  value(id).constant = std::move(bytes);
  return id;
}

void Graph::add_output(std::string wanted, ValueId id) {
  outputs.push_back(id);
  output_names.push_back(std::move(wanted));
}

Node* Graph::add_node(std::string op, int32_t version, std::string wanted, std::vector<ValueId> ins,
                      std::vector<ValueId> outs) {
  return insert_node(nodes.size(), std::move(op), version, std::move(wanted), std::move(ins), std::move(outs));
}

Node* Graph::insert_node(size_t index, std::string op, int32_t version, std::string wanted, std::vector<ValueId> ins,
                         std::vector<ValueId> outs) {
  auto node = std::make_unique<Node>();
  node->op = std::move(op);
  node->version = version;
  node->name = unique_name(std::move(wanted), true);
  node->inputs = std::move(ins);
  node->outputs = std::move(outs);
  Node* raw = node.get();
  nodes.insert(nodes.begin() + static_cast<ptrdiff_t>(index), std::move(node));
  return raw;
}

void Graph::replace_uses(ValueId from, ValueId to) {
  for (auto& node : nodes) std::replace(node->inputs.begin(), node->inputs.end(), from, to);
  std::replace(outputs.begin(), outputs.end(), from, to);
  for (State& s : states) {
    if (s.output == from) s.output = to;
  }
}

void Graph::erase_nodes(const std::vector<bool>& dead) {
  size_t kept = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!dead[i]) std::swap(nodes[kept++], nodes[i]);
  }
  nodes.resize(kept);
  names_.reset();
}

void Graph::compact() {
  std::vector<ValueId> renumbered(values.size(), kNoValue);
  const auto mark = [&](ValueId id) {
    if (id != kNoValue) renumbered[id] = 0;
  };
  for (const auto& node : nodes) {
    for (ValueId id : node->inputs) mark(id);
    for (ValueId id : node->outputs) mark(id);
    for (auto& [attr_name, attr] : node->attrs) {
      if (const auto* body = std::get_if<GraphPtr>(&attr)) (*body)->compact();
    }
  }
  for (ValueId id : inputs) mark(id);
  for (ValueId id : outputs) mark(id);
  for (const State& s : states) mark(s.input), mark(s.output);
  ValueId next = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (renumbered[i] == kNoValue) continue;
    if (static_cast<size_t>(next) != i) values[next] = std::move(values[i]);
    renumbered[i] = next++;
  }
  values.resize(static_cast<size_t>(next));
  const auto rename = [&](ValueId& id) {
    if (id != kNoValue) id = renumbered[id];
  };
  for (auto& node : nodes) {
    for (ValueId& id : node->inputs) rename(id);
    for (ValueId& id : node->outputs) rename(id);
  }
  for (ValueId& id : inputs) rename(id);
  for (ValueId& id : outputs) rename(id);
  for (State& s : states) rename(s.input), rename(s.output);
  names_.reset();
}

Uses::Uses(const Graph& graph)
    : producer(graph.values.size(), -1), readers(graph.values.size()), exits(graph.values.size(), 0) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = *graph.nodes[i];
    for (ValueId id : node.inputs) {
      if (id != kNoValue) readers[id].push_back(static_cast<int32_t>(i));
    }
    for (ValueId id : node.outputs) producer[id] = static_cast<int32_t>(i);
  }
  for (ValueId id : graph.outputs) ++exits[id];
  for (const State& s : graph.states) ++exits[s.output];
}

}  // namespace pinnace
