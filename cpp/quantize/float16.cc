// One walk in order. A value that a chosen node makes changes its type; a value of the other type stands beside it once
// somebody reads that.
#include "quantize/float16.h"

#include <cmath>
#include <unordered_set>

#include "base/half.h"
#include "base/text.h"
#include "convert/picture_nodes.h"

namespace pinnace {
namespace {

constexpr float kLargest = 65504, kSmallest = 0x1p-24f;  // float16's, of numbers that are not 0

bool is_f32(const TensorType& type) {
  return type.dtype == DType::kF32 && !type.quantized();
}

/// The schema of input i; the last one stands for all that follow where it takes any number.
const InputDef& schema_of(const OpDef& op, size_t i) {
  return op.inputs.begin()[std::min(i, op.inputs.size() - 1)];
}

bool takes_float16(const OpDef& op, size_t i) {
  return op.inputs.size() > 0 && (schema_of(op, i).types & kF16) != 0;
}

bool has_nested_graph(const Node& node) {
  for (const auto& [name, attr] : node.attrs) {
    if (std::holds_alternative<GraphPtr>(attr)) return true;
  }
  return false;
}

/// Why float16 has no room for the constant; empty where it has. Of several numbers, small ones may become 0.
std::string beyond_float16(const Value& value) {
  const int64_t count = value.type.elements();
  if (!value.constant->check().ok()) return str_cat("its constant '", value.name, "' cannot be read");
  const auto* x = reinterpret_cast<const float*>(value.constant->data());
  for (int64_t i = 0; i < count; ++i) {
    const float size = std::fabs(x[i]);
    const bool large = size > kLargest && std::isfinite(size), small = count == 1 && size != 0 && size < kSmallest;
    if (large || small) return str_cat("its constant '", value.name, "' has ", x[i], ", beyond float16");
  }
  return "";
}

/// Why the node stays in float32; empty where it need not.
std::string why_not_float16(const Graph& graph, const Node& node, const OpTable& ops) {
  const OpDef* op = ops.find(node.op);
  if (!op || has_nested_graph(node)) return "its graphs stay in float32";
  if (node.source.module == kPreprocessingModule) return "it makes bytes of a picture, which float16 does not hold";
  if (op->has(Trait::kConverts)) return "it converts between types";
  bool any = false, all = true;
  std::string beyond;
  std::vector<TensorType> types(node.inputs.size());
  std::vector<const TensorType*> type_of;
  std::vector<const void*> data;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    if (id == kNoValue) {
      type_of.push_back(nullptr);
      data.push_back(nullptr);
      continue;
    }
    const Value& value = graph.value(id);
    types[i] = value.type;
    const bool changes = is_f32(value.type) && takes_float16(*op, i);
    if (changes) types[i].dtype = DType::kF16;
    all &= !is_f32(value.type) || changes || i > 0;  // what stays float32 behind the first is a parameter
    any |= changes;
    if (changes && value.constant && beyond.empty()) beyond = beyond_float16(value);
    type_of.push_back(&types[i]);
    data.push_back(value.constant && !changes && value.constant->check().ok() ? value.constant->data() : nullptr);
  }
  if (!any || !all) return "it has no float16 form";
  if (!beyond.empty()) return beyond;
  std::vector<const TensorType*> declared;
  for (const ValueId id : node.outputs) declared.push_back(id == kNoValue ? nullptr : &graph.value(id).type);
  const auto found = infer_node_types(NodeView(node, *op, type_of, data, declared));
  return found.ok() ? "" : "it has no float16 form";
}

class Conversion {
 public:
  Conversion(Graph& graph, const OpTable& ops, std::span<const std::string> nodes, bool values)
      : graph_(graph), ops_(ops), chosen_(nodes.begin(), nodes.end()), values_(values) {}

  Status run() {
    other_.assign(graph_.values.size(), kNoValue);
    for (size_t k = 0; k < graph_.nodes.size(); ++k) {
      Node& node = *graph_.nodes[k];
      const bool chosen = chosen_.erase(node.name) > 0;
      if (chosen) {
        const std::string why = why_not_before(k);
        if (!why.empty()) return invalid("node '", node.name, "' (", node.op, ") stays in float32: ", why);
      }
      PINNACE_TRY(place(k, chosen));
    }
    if (!chosen_.empty()) return invalid("there is no node '", *chosen_.begin(), "' to compute in float16");
    for (ValueId& id : graph_.outputs) {
      PINNACE_ASSIGN(id, leaving(id));
    }
    for (State& state : graph_.states) {
      PINNACE_ASSIGN(state.output, leaving(state.output));
    }
    PINNACE_TRY(verify(graph_));
    return update_types(graph_, ops_);
  }

 private:
  bool is_half(ValueId id) const { return half_.contains(id); }

  /// As find_float16_sites() had it: of the types before anything changed.
  std::string why_not_before(size_t k) {
    // Values that became float16 count as what they were.
    for (const ValueId id : graph_.nodes[k]->inputs) {
      if (id != kNoValue && is_half(id)) graph_.value(id).type.dtype = DType::kF32;
    }
    std::string why = why_not_float16(graph_, *graph_.nodes[k], ops_);
    for (const ValueId id : graph_.nodes[k]->inputs) {
      if (id != kNoValue && is_half(id) && values_) graph_.value(id).type.dtype = DType::kF16;
    }
    return why;
  }

  /// Node k reads each operand in the type that it wants. `k` moves on with what is inserted before it.
  Status place(size_t& k, bool chosen) {
    const OpDef* op = ops_.find(graph_.nodes[k]->op);
    for (size_t i = 0; i < graph_.nodes[k]->inputs.size(); ++i) {
      const ValueId id = graph_.nodes[k]->inputs[i];
      if (id == kNoValue) continue;
      const bool half = is_half(id);
      if (!half && !(is_f32(graph_.value(id).type) && chosen && takes_float16(*op, i))) continue;
      const bool wants_half = chosen && takes_float16(*op, i);
      if (half == wants_half || (half && !values_)) continue;
      PINNACE_ASSIGN(const ValueId read, other(id, k));
      graph_.nodes[k]->inputs[i] = read;
    }
    return chosen ? mark_made(*graph_.nodes[k], *op) : Status{};
  }

  /// What a chosen node makes of float16 operands is float16 where its operator says so.
  Status mark_made(const Node& node, const OpDef& op) {
    std::vector<TensorType> read(node.inputs.size());
    std::vector<const TensorType*> types, declared;
    std::vector<const void*> data;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      const Value* value = id == kNoValue ? nullptr : &graph_.value(id);
      if (value) read[i] = value->type;
      const bool held_wide = value && is_half(id) && !values_ && takes_float16(op, i);  // its bytes are float32's
      if (held_wide) read[i].dtype = DType::kF16;
      types.push_back(value ? &read[i] : nullptr);
      data.push_back(value && value->constant && !held_wide ? value->constant->data() : nullptr);
    }
    for (const ValueId id : node.outputs) declared.push_back(id == kNoValue ? nullptr : &graph_.value(id).type);
    PINNACE_ASSIGN(const auto found, infer_node_types(NodeView(node, op, types, data, declared)));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue || found[i].dtype != DType::kF16) continue;
      if (values_) graph_.value(node.outputs[i]).type.dtype = DType::kF16;
      half_.insert(node.outputs[i]);
    }
    return {};
  }

  /// The value in the other type, made before node k; without values_, the same rounded to float16, in float32.
  Result<ValueId> other(ValueId id, size_t& k) {
    if (static_cast<size_t>(id) < other_.size() && other_[static_cast<size_t>(id)] != kNoValue) {
      return other_[static_cast<size_t>(id)];
    }
    PINNACE_ASSIGN(const ValueId made, graph_.value(id).constant ? constant(id)
                                       : values_                 ? cast(id, k++)
                                                                 : rounded(id, k));
    if (!values_) half_.insert(made);
    other_.resize(graph_.values.size(), kNoValue);
    other_[static_cast<size_t>(id)] = made;
    return made;
  }

  Result<ValueId> constant(ValueId id) {
    TensorType type = graph_.value(id).type;
    if (values_) type.dtype = DType::kF16;
    PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>(type.bytes()), graph_.value(id).name));
    const auto* from = reinterpret_cast<const float*>(graph_.value(id).constant->data());
    if (!values_) {
      auto* rounded = reinterpret_cast<float*>(bytes.data());
      for (int64_t i = 0; i < type.elements(); ++i) rounded[i] = half_to_float(float_to_half(from[i]));
      return graph_.add_constant(str_cat(graph_.value(id).name, ".rounded"), std::move(type),
                                 Constant::of(std::move(bytes)));
    }
    auto* to = reinterpret_cast<uint16_t*>(bytes.data());
    for (int64_t i = 0; i < type.elements(); ++i) to[i] = float_to_half(from[i]);
    const std::string name = str_cat(graph_.value(id).name, ".float16");
    return graph_.add_constant(name, std::move(type), Constant::of(std::move(bytes)));
  }

  ValueId cast(ValueId id, size_t before) {
    const bool half = is_half(id);
    TensorType type = graph_.value(id).type;
    type.dtype = half ? DType::kF32 : DType::kF16;
    const ValueId made =
        graph_.add_value(str_cat(graph_.value(id).name, half ? ".float32" : ".float16"), std::move(type));
    insert_cast(before, id, made);
    return made;
  }

  /// What the program's cast of the value gives, by the name of that cast. `k` moves on with what is inserted before
  /// it.
  ValueId rounded(ValueId id, size_t& k) {
    const std::string name = graph_.value(id).name;
    TensorType type = graph_.value(id).type;
    const ValueId back = graph_.add_value(str_cat(name, ".float16"), type);
    type.dtype = DType::kF16;
    const ValueId half = graph_.add_value(str_cat(name, ".float16.half"), std::move(type));
    insert_cast(k++, id, half);
    insert_cast(k++, half, back);
    return back;
  }

  void insert_cast(size_t before, ValueId from, ValueId to) {
    Node* node = graph_.insert_node(before, "cast", 1, graph_.value(to).name, {from}, {to});
    node->set_attr("to", std::string(graph_.value(to).type.dtype == DType::kF32 ? "f32" : "f16"));
  }

  /// As outputs and states have it: float32.
  Result<ValueId> leaving(ValueId id) {
    size_t end = graph_.nodes.size();
    return is_half(id) && values_ ? other(id, end) : Result<ValueId>(id);
  }

  Graph& graph_;
  const OpTable& ops_;
  std::unordered_set<std::string_view> chosen_;
  bool values_;
  std::unordered_set<ValueId> half_;  ///< float16; without values_, what is float16 with them
  std::vector<ValueId> other_;        ///< by value: it in the other type, where there is one
};

}  // namespace

std::vector<Float16Site> find_float16_sites(const Graph& graph, const OpTable& ops) {
  std::vector<Float16Site> sites;
  for (const auto& node : graph.nodes) {
    bool any = false;
    int64_t weights = 0;
    for (const ValueId id : node->inputs) {
      if (id == kNoValue || !is_f32(graph.value(id).type)) continue;
      any = true;
      if (graph.value(id).constant) weights += graph.value(id).type.elements();
    }
    if (any) sites.push_back({node->name, node->op, node->source.module, weights, why_not_float16(graph, *node, ops)});
  }
  return sites;
}

Status convert_to_float16(Graph& graph, const OpTable& ops, std::span<const std::string> nodes, bool values) {
  return Conversion(graph, ops, nodes, values).run();
}

}  // namespace pinnace
