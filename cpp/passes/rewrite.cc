// Bookkeeping of rewrites.
#include "passes/rewrite.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "ops/element.h"

namespace pinnace {

Rewrite::Rewrite(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {
  grow();
  for (const auto& node : graph.nodes) {
    nodes_.push_back(node.get());
    for (ValueId id : node->inputs) {
      if (id != kNoValue) readers_[static_cast<size_t>(id)].push_back(node.get());
    }
    for (ValueId id : node->outputs) producer_[static_cast<size_t>(id)] = node.get();
  }
  maker_ = producer_;
  for (ValueId id : graph.outputs) leaves_[static_cast<size_t>(id)] = true;
  for (const State& s : graph.states) leaves_[static_cast<size_t>(s.output)] = true;
  if (context.keep.empty()) return;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (context.keeps(graph, static_cast<ValueId>(i))) leaves_[i] = true;
  }
}

void Rewrite::grow() {
  producer_.resize(graph_.values.size(), nullptr);
  readers_.resize(graph_.values.size());
  leaves_.resize(graph_.values.size(), false);
}

Node* Rewrite::producer(ValueId id) const {
  return id == kNoValue ? nullptr : producer_[static_cast<size_t>(id)];
}

Node* Rewrite::producer(ValueId id, std::string_view op) const {
  Node* node = producer(id);
  return node && node->op == op && node->outputs.size() == 1 ? node : nullptr;
}

bool Rewrite::closed(const std::vector<Node*>& pattern, const Node* last) const {
  for (const Node* node : pattern) {
    if (node == last) return false;
    for (ValueId id : node->outputs) {
      if (leaves(id)) return false;
      for (const Node* reader : readers(id)) {
        if (reader != last && std::find(pattern.begin(), pattern.end(), reader) == pattern.end()) return false;
      }
    }
  }
  return true;
}

void Rewrite::set_inputs(Node& node, std::vector<ValueId> inputs) {
  for (ValueId id : node.inputs) {
    if (id == kNoValue) continue;
    auto& readers = readers_[static_cast<size_t>(id)];
    const auto found = std::find(readers.begin(), readers.end(), &node);
    if (found != readers.end()) readers.erase(found);
  }
  node.inputs = std::move(inputs);
  while (!node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
  for (ValueId id : node.inputs) {
    if (id != kNoValue) readers_[static_cast<size_t>(id)].push_back(&node);
  }
}

void Rewrite::replace(Node& node, std::string_view op, std::vector<ValueId> inputs, decltype(Node::attrs) attrs,
                      SourceLocation source) {
  note_read(node);
  replaced_.push_back(&node);
  set_inputs(node, std::move(inputs));
  node.op = op;
  node.version = 1;
  node.attrs = std::move(attrs);
  node.source = std::move(source);
  ++changes_;
}

void Rewrite::remove(Node& node) {
  if (!dead_.insert(&node).second) return;
  note_read(node);
  set_inputs(node, {});
  for (ValueId id : node.outputs) producer_[static_cast<size_t>(id)] = nullptr;
}

void Rewrite::redirect(ValueId from, ValueId to) {
  const std::vector<Node*> readers = readers_[static_cast<size_t>(from)];  // a copy: the loop changes it
  for (Node* reader : readers) {
    auto inputs = reader->inputs;
    std::replace(inputs.begin(), inputs.end(), from, to);
    set_inputs(*reader, std::move(inputs));
  }
}

bool Rewrite::bypass(Node& node, ValueId to) {
  const ValueId from = node.outputs[0];
  Node* maker = producer(to);
  if (leaves(from)) {
    if (!maker || leaves(to) || !(type(from) == type(to))) return false;
    set_inputs(node, {});
    redirect(to, from);
    std::replace(maker->outputs.begin(), maker->outputs.end(), to, from);
    node.outputs = {to};  // dead, but a graph in single assignment until then
    dead_.insert(&node);
    producer_[static_cast<size_t>(from)] = maker;
    producer_[static_cast<size_t>(to)] = nullptr;
  } else {
    redirect(from, to);
    remove(node);
  }
  ++changes_;
  return true;
}

ValueId Rewrite::insert_before(Node& node, std::string_view op, std::vector<ValueId> inputs,
                               decltype(Node::attrs) attrs, TensorType type, std::string name) {
  size_t index = 0;
  while (graph_.nodes[index].get() != &node) ++index;
  const ValueId out = graph_.add_value(name, std::move(type));
  grow();
  Node* made = graph_.insert_node(index, std::string(op), 1, std::move(name), {}, {out});
  made->attrs = std::move(attrs);
  made->source = node.source;
  set_inputs(*made, std::move(inputs));
  producer_[static_cast<size_t>(out)] = made;
  return out;
}

bool Rewrite::affords(const TensorType& type) const {
  int64_t left = context_.constant_budget / ((dtype_bits(type.dtype) + 7) / 8);
  if (left < 0 || std::any_of(type.shape.begin(), type.shape.end(), [](Dim d) { return !d.known(); })) return false;
  if (std::any_of(type.shape.begin(), type.shape.end(), [](Dim d) { return d.size == 0; })) return true;
  for (const Dim& d : type.shape) left /= d.size;
  return left > 0;
}

Result<ValueId> Rewrite::add_constant(std::string name, DType dtype, Shape shape,
                                      const std::function<double(size_t)>& element) {
  const TensorType type{dtype, std::move(shape), nullptr};
  PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>(type.bytes()), "a folded constant"));
  visit(dtype, [&](auto zero) {
    using T = decltype(zero);
    auto* to = reinterpret_cast<T*>(bytes.data());
    for (size_t i = 0; i < static_cast<size_t>(type.elements()); ++i) to[i] = convert<T>(element(i));
  });
  context_.constant_budget -= type.bytes();
  const ValueId id = graph_.add_constant(std::move(name), type, Constant::of(std::move(bytes)));
  grow();
  return id;
}

ValueId Rewrite::add_constant_like(std::string name, TensorType type, ConstantPtr bytes) {
  const ValueId id = graph_.add_constant(std::move(name), std::move(type), std::move(bytes));
  grow();
  return id;
}

void Rewrite::note_read(Node& node) {
  std::vector<Node*>& makers = read_[&node];
  for (ValueId id : node.inputs) {
    const auto place = static_cast<size_t>(id);
    if (id != kNoValue && place < maker_.size() && maker_[place]) makers.push_back(maker_[place]);
  }
}

/// What a replaced node read, and is gone, has become a part of it; so has what that read.
void Rewrite::note_merged() {
  std::unordered_set<const Node*> seen;
  for (const Node* node : replaced_) {
    if (!alive(node)) continue;
    std::vector<const Node*> waiting = {node};
    while (!waiting.empty()) {
      const auto found = read_.find(waiting.back());
      waiting.pop_back();
      if (found == read_.end()) continue;
      for (const Node* maker : found->second) {
        if (alive(maker) || !seen.insert(maker).second) continue;
        context_.merged.emplace_back(maker->name, node->name);
        waiting.push_back(maker);
      }
    }
  }
}

int Rewrite::finish() {
  if (!dead_.empty()) {
    note_merged();
    std::vector<bool> dead(graph_.nodes.size());
    for (size_t i = 0; i < dead.size(); ++i) dead[i] = dead_.contains(graph_.nodes[i].get());
    graph_.erase_nodes(dead);
  }
  return changes_;
}

std::optional<std::vector<double>> Rewrite::numbers(ValueId id) const {
  if (id == kNoValue) return std::nullopt;
  const Value& v = graph_.value(id);
  if (!v.constant || v.type.quantized()) return std::nullopt;
  if (!is_float_type(v.type.dtype) && v.type.dtype != DType::kI32 && v.type.dtype != DType::kI64) return std::nullopt;
  std::vector<double> result(static_cast<size_t>(v.type.elements()));
  visit(v.type.dtype, [&](auto zero) {
    const auto* from = reinterpret_cast<const decltype(zero)*>(v.constant->data());
    for (size_t i = 0; i < result.size(); ++i) result[i] = static_cast<double>(widen(from[i]));
  });
  return result;
}

std::optional<double> Rewrite::scalar(ValueId id) const {
  if (id == kNoValue || !graph_.value(id).constant || type(id).elements() != 1) return std::nullopt;
  const auto all = numbers(id);
  if (!all) return std::nullopt;
  return all->front();
}

bool Rewrite::is_scalar(ValueId id, double wanted) const {
  const auto found = scalar(id);
  if (!found) return false;
  const DType dtype = type(id).dtype;
  const double unit = dtype == DType::kBF16  ? 0x1p-8
                      : dtype == DType::kF16 ? 0x1p-11
                      : dtype == DType::kF64 ? 0x1p-51
                                             : 0x1p-22;
  return std::fabs(*found - wanted) <= unit * std::fabs(wanted);
}

double Rewrite::float_attr(const Node& node, std::string_view name) const {
  if (const Attr* attr = node.attr(name)) {
    if (const double* found = std::get_if<double>(attr)) return *found;
  }
  for (const AttrDef& def : op(node).attrs) {
    if (std::string_view(def.name) == name) return def.float_default();
  }
  assert(false);
  return 0;
}

std::optional<Unary> Rewrite::unary(const Node& node) const {
  if (op(node).unary == UnaryKind::kNone) return std::nullopt;
  std::vector<const TensorType*> types;
  std::vector<const void*> data;
  for (ValueId id : node.inputs) {
    types.push_back(id == kNoValue ? nullptr : &type(id));
    data.push_back(id == kNoValue || !graph_.value(id).constant ? nullptr : graph_.value(id).constant->data());
  }
  return unary_of(NodeView(node, op(node), types, data));
}

namespace {
/// Adds what `node` multiplies; false if it is no part of a product of that type.
bool multiply(const Rewrite& rewrite, const Node& node, const TensorType& type, Product& product, int depth) {
  constexpr int kDepth = 6;  // deeper than every formula of interest
  const auto term = [&](ValueId id) {
    if (const auto number = rewrite.scalar(id); number && rewrite.type(id).rank() <= type.rank()) {
      product.factor *= *number;
      return;
    }
    Node* maker = rewrite.producer(id);
    if (maker && depth < kDepth && rewrite.inner(id) && rewrite.type(id) == type &&
        multiply(rewrite, *maker, type, product, depth + 1)) {
      product.nodes.push_back(maker);
    } else {
      product.terms.push_back(id);
    }
  };
  if (node.outputs.size() != 1 || !is_float_type(type.dtype)) return false;
  if (node.op == "mul" && node.inputs.size() == 2) {
    term(node.inputs[0]);
    term(node.inputs[1]);
    return true;
  }
  if (node.op == "neg") {
    product.factor = -product.factor;
    term(node.inputs[0]);
    return true;
  }
  if (node.op != "div" || node.inputs.size() != 2) return false;
  const auto divisor = rewrite.scalar(node.inputs[1]);
  if (!divisor || *divisor == 0 || rewrite.type(node.inputs[1]).rank() > type.rank()) return false;
  product.factor /= *divisor;
  term(node.inputs[0]);
  return true;
}
}  // namespace

std::optional<Product> product_of(const Rewrite& rewrite, Node& last) {
  Product product;
  if (!multiply(rewrite, last, rewrite.type(last.outputs[0]), product, 0)) return std::nullopt;
  return product;
}

Product product_of(const Rewrite& rewrite, ValueId id) {
  if (Node* maker = rewrite.producer(id); maker && rewrite.inner(id)) {
    if (auto product = product_of(rewrite, *maker)) {
      product->nodes.push_back(maker);
      return std::move(*product);
    }
  }
  return Product{1, {id}, {}};
}

int64_t int_or(const Node& node, std::string_view name, int64_t value) {
  const Attr* attr = node.attr(name);
  const int64_t* found = attr ? std::get_if<int64_t>(attr) : nullptr;
  return found ? *found : value;
}

std::string_view string_or(const Node& node, std::string_view name, std::string_view value) {
  const Attr* attr = node.attr(name);
  const std::string* found = attr ? std::get_if<std::string>(attr) : nullptr;
  return found ? std::string_view(*found) : value;
}

std::span<const int64_t> ints_or_empty(const Node& node, std::string_view name) {
  const Attr* attr = node.attr(name);
  const auto* found = attr ? std::get_if<std::vector<int64_t>>(attr) : nullptr;
  return found ? std::span<const int64_t>(*found) : std::span<const int64_t>();
}

}  // namespace pinnace
