// Type inference of nested graphs.
#include "ops/bodies.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace pinnace {
namespace {
// Contents that shapes can depend on: integer vectors and scalars. Others would only make type inference compute the
// body ahead.
bool shapes_depend_on(const TensorType& type) {
  return (kIndices >> static_cast<int>(type.dtype) & 1) && type.rank() <= 1 && type.concrete() &&
         type.elements() <= kKnownElements;
}

thread_local Bodies* bodies_of_this_thread = nullptr;

template <class T>
void put(std::string& key, T number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// All that type inference reads of an input, so that no two inputs have the same bytes here.
void put(std::string& key, const TensorType& type, const ConstantPtr& contents) {
  put(key, type.dtype);
  put(key, type.rank());
  for (const Dim& d : type.shape) put(key, d.size), put(key, d.symbol), put(key, d.max);
  put(key, type.quantized());
  if (type.quantized()) {
    const Quantization& q = *type.quantization;
    put(key, q.axis), put(key, q.block), put(key, q.scales.size()), put(key, q.zero_points.size());
    for (const float scale : q.scales) put(key, scale);
    for (const int32_t zero : q.zero_points) put(key, zero);
  }
  put(key, contents != nullptr);
  if (contents) key.append(reinterpret_cast<const char*>(contents->data()), contents->bytes());
}

Result<BodyOutputs> infer_outputs(const Graph& body, std::span<const TensorType> inputs,
                                  std::span<const ConstantPtr> contents, const OpTable& ops, Bodies& bodies) {
  PINNACE_ASSIGN(TypeInference found, infer_nested(body, inputs, contents, ops, bodies));
  BodyOutputs outputs;
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    const auto id = static_cast<size_t>(body.outputs[i]);
    const ConstantPtr& data = found.data[id];
    if (i == 0 && found.types[id].dtype == DType::kBool && data && data->bytes()) {
      PINNACE_TRY(data->check());
      outputs.first_is_true = *reinterpret_cast<const uint8_t*>(data->data()) != 0;
    }
    outputs.types.push_back(found.types[id]);
  }
  return outputs;
}

}  // namespace

int64_t nested_nodes(const Node& node) {
  int64_t count = 0;
  for (const auto& [name, attr] : node.attrs) {
    const auto* body = std::get_if<GraphPtr>(&attr);
    if (body) count += static_cast<int64_t>((*body)->nodes.size()) + nested_nodes(**body);
  }
  return count;
}

int64_t nested_nodes(const Graph& graph) {
  int64_t count = 0;
  for (const auto& node : graph.nodes) count += nested_nodes(*node);
  return count;
}

Bodies::Bodies(int64_t nodes)
    : nodes_(nodes), limit_(kSteps + kStepsPerNode * nodes), before_(std::exchange(bodies_of_this_thread, this)) {}

Bodies::~Bodies() {
  bodies_of_this_thread = before_;
}

Bodies* Bodies::current() {
  return bodies_of_this_thread;
}

Status Bodies::charge(int64_t steps) {
  steps_ += std::min(steps, limit_);  // a sum that cannot overflow
  if (steps_ <= limit_) return {};
  steps_ = limit_ + 1;
  return unsupported("the types in nested graphs take more than ", limit_, " steps to infer, the limit for ", nodes_,
                     " nested nodes: loops in loops, each of which changes sizes of those in it");
}

const Result<BodyOutputs>* Bodies::find(const std::string& key) const {
  const auto at = found_.find(key);
  return at == found_.end() ? nullptr : &at->second;
}

void Bodies::keep(std::string key, const Result<BodyOutputs>& found) {
  found_.insert_or_assign(std::move(key), found);
}

Result<BodyOutputs> infer_body(const NodeView& node, std::string_view what, const Graph& body,
                               std::span<const TensorType> inputs, std::span<const void* const> data) {
  if (inputs.size() != body.inputs.size()) {
    return node.error(what, " takes ", body.inputs.size(), " inputs, is given ", inputs.size());
  }
  std::vector<ConstantPtr> contents(inputs.size());
  std::string key;
  put(key, reinterpret_cast<uintptr_t>(&body));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& declared = body.value(body.inputs[i]).type;
    if (declared.dtype != inputs[i].dtype) {
      return node.error("input ", i, " of ", what, " is ", declared, ", is given ", inputs[i]);
    }
    if (data[i] && shapes_depend_on(inputs[i])) {
      contents[i] = std::make_shared<const Constant>(nullptr, data[i], static_cast<size_t>(inputs[i].bytes()));
    }
    put(key, inputs[i], contents[i]);
  }
  std::optional<Bodies> own;  // where the node is inferred alone
  if (!Bodies::current()) own.emplace(nested_nodes(node.node()));
  Bodies& bodies = *Bodies::current();
  PINNACE_TRY(bodies.charge(1 + static_cast<int64_t>(key.size()) / Bodies::kBytesPerStep));
  if (const Result<BodyOutputs>* found = bodies.find(key)) return *found;
  static const OpTable* const built_in = new OpTable;  // never destroyed: no exit-time destructors
  Result<BodyOutputs> outputs = infer_outputs(body, inputs, contents, node.ops() ? *node.ops() : *built_in, bodies);
  bodies.keep(std::move(key), outputs);
  return outputs;
}

Result<BodyOutputs> infer_body(const NodeView& node, std::string_view what, const Graph& body) {
  std::vector<TensorType> declared;
  for (ValueId id : body.inputs) declared.push_back(body.value(id).type);
  return infer_body(node, what, body, declared, std::vector<const void*>(declared.size(), nullptr));
}

Result<TensorType> either_type(const NodeView& node, std::string_view what, const TensorType& a, const TensorType& b) {
  const bool same_parameters = a.quantized() == b.quantized() && (!a.quantized() || *a.quantization == *b.quantization);
  if (a.dtype != b.dtype || a.rank() != b.rank() || !same_parameters) {
    return node.error(what, " is ", a, " one way and ", b, " the other");
  }
  TensorType type = a;
  for (size_t d = 0; d < type.shape.size(); ++d) {
    const Dim x = a.shape[d], y = b.shape[d];
    if (x == y) continue;
    const int64_t most_x = x.known() ? x.size : x.max, most_y = y.known() ? y.size : y.max;
    type.shape[d] = most_x >= 0 && most_y >= 0 ? Dim::unknown(std::max(most_x, most_y)) : Dim();
  }
  return type;
}

}  // namespace pinnace
