// SourceNode: reading a node of the source, and putting nodes of ours in its place.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/dtype_code.h"
#include "import/onnx/mapping.h"
#include "ops/element.h"

namespace pinnace::onnx {
namespace {
using A = proto::AttributeProto;

/// The kind of an attribute; models of the first versions do not say it.
A::AttributeType kind_of(const A& a) {
  if (a.has_type() && a.type() != A::UNDEFINED) return a.type();
  if (a.has_f()) return A::FLOAT;
  if (a.has_i()) return A::INT;
  if (a.has_s()) return A::STRING;
  if (a.has_t()) return A::TENSOR;
  if (a.has_g()) return A::GRAPH;
  if (a.floats_size()) return A::FLOATS;
  if (a.ints_size()) return A::INTS;
  if (a.strings_size()) return A::STRINGS;
  return A::UNDEFINED;
}

Status check_kind(const A& a, A::AttributeType wanted) {
  const A::AttributeType kind = kind_of(a);
  if (kind == wanted) return {};
  if (kind == A::UNDEFINED && (wanted == A::INTS || wanted == A::FLOATS || wanted == A::STRINGS)) return {};  // empty
  const auto name = [](A::AttributeType k) {
    return A::AttributeType_IsValid(k) ? A::AttributeType_Name(k) : str_cat(static_cast<int>(k));
  };
  return refuse(str_cat("attribute '", a.name(), "' must be of kind ", name(wanted)), name(kind));
}

std::string small_letters(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

bool is_default(const OpDef& op, const std::string& name, const Attr& value) {
  for (const AttrDef& def : op.attrs) {
    if (std::string_view(def.name) != name || def.kind != attr_kind(value) || def.required) continue;
    switch (def.kind) {
      case AttrKind::kInt:
        return std::get<int64_t>(value) == def.int_default();
      // The source has single precision: its 0.01 is our default 0.01.
      case AttrKind::kFloat:
        return static_cast<float>(std::get<double>(value)) == static_cast<float>(def.float_default());
      case AttrKind::kString:
        return std::get<std::string>(value) == def.string_default();
      default:
        return false;
    }
  }
  return false;
}
}  // namespace

Status refuse(std::string rule, std::string value) {
  Status status(Code::kUnsupported, value.empty() ? rule : str_cat(rule, ": ", value));
  status.with_nodes({NodeProblem{{}, {}, {}, std::move(rule), std::move(value)}});
  return status;
}

SourceNode::SourceNode(Scope& scope, const proto::NodeProto& proto, std::string name, int64_t opset,
                       std::vector<ValueId> inputs)
    : scope_(scope), proto_(proto), name_(std::move(name)), opset_(opset), inputs_(std::move(inputs)) {
  while (!inputs_.empty() && inputs_.back() == kNoValue) inputs_.pop_back();
}

Status SourceNode::need_inputs(int count) const {
  for (int i = 0; i < count; ++i) {
    if (!has(i)) return refuse(str_cat("needs ", count, " inputs"), str_cat("input ", i, " is missing"));
  }
  return {};
}

std::optional<std::vector<int64_t>> SourceNode::known_ints(int i) const {
  if (!has(i)) return std::nullopt;
  const TensorType& t = in_type(i);
  const ConstantPtr& data = scope_.builder.data(in(i));
  if (!data || !t.concrete() || (t.dtype != DType::kI64 && t.dtype != DType::kI32)) return std::nullopt;
  std::vector<int64_t> ints(static_cast<size_t>(t.elements()));
  for (size_t k = 0; k < ints.size(); ++k) {
    ints[k] = t.dtype == DType::kI64 ? reinterpret_cast<const int64_t*>(data->data())[k]
                                     : reinterpret_cast<const int32_t*>(data->data())[k];
  }
  return ints;
}

int SourceNode::output_count() const {
  int count = proto_.output_size();
  while (count > 0 && proto_.output(count - 1).empty()) --count;
  return count;
}

// ------------------------------------------------------------------------------------------------------ attributes

const A* SourceNode::resolve(const A& a) const {
  if (!a.has_ref_attr_name() || a.ref_attr_name().empty()) return &a;
  const auto at = scope_.frame.attributes.find(a.ref_attr_name());
  return at == scope_.frame.attributes.end() ? nullptr : at->second;
}

const A* SourceNode::attr(std::string_view name) const {
  for (const A& a : proto_.attribute()) {
    if (a.name() == name) return resolve(a);
  }
  return nullptr;
}

std::vector<std::pair<std::string_view, const A*>> SourceNode::attributes() const {
  std::vector<std::pair<std::string_view, const A*>> all;
  for (const A& a : proto_.attribute()) {
    if (const A* resolved = resolve(a)) all.emplace_back(a.name(), resolved);
  }
  return all;
}

Result<int64_t> SourceNode::int_attr(std::string_view name, int64_t fallback) const {
  const A* a = attr(name);
  if (!a) return fallback;
  PINNACE_TRY(check_kind(*a, A::INT));
  return a->i();
}

Result<double> SourceNode::float_attr(std::string_view name, double fallback) const {
  const A* a = attr(name);
  if (!a) return fallback;
  PINNACE_TRY(check_kind(*a, A::FLOAT));
  return static_cast<double>(a->f());
}

Result<std::string_view> SourceNode::string_attr(std::string_view name, std::string_view fallback) const {
  const A* a = attr(name);
  if (!a) return fallback;
  PINNACE_TRY(check_kind(*a, A::STRING));
  return std::string_view(a->s());
}

Result<std::vector<int64_t>> SourceNode::ints_attr(std::string_view name) const {
  const A* a = attr(name);
  if (!a) return std::vector<int64_t>{};
  PINNACE_TRY(check_kind(*a, A::INTS));
  return std::vector<int64_t>(a->ints().begin(), a->ints().end());
}

Result<std::vector<double>> SourceNode::floats_attr(std::string_view name) const {
  const A* a = attr(name);
  if (!a) return std::vector<double>{};
  PINNACE_TRY(check_kind(*a, A::FLOATS));
  return std::vector<double>(a->floats().begin(), a->floats().end());
}

Result<const proto::GraphProto*> SourceNode::graph_attr(std::string_view name) const {
  for (const A& a : proto_.attribute()) {
    if (a.name() != name) continue;
    if (!a.ref_attr_name().empty())
      return refuse("graphs as attributes of functions are not supported", a.ref_attr_name());
    PINNACE_TRY(check_kind(a, A::GRAPH));
    return &a.g();
  }
  return refuse(str_cat("attribute '", name, "' is required"));
}

Result<Attrs> convert_attributes(const SourceNode& node, const OpDef& op, Names skip) {
  // What newer or older forms of operators say beside ours: a value that changes nothing, or any value where it
  // concerns only training or the precision of intermediate results.
  struct Harmless {
    std::string_view name;
    bool any;
    int64_t value;
  };
  static constexpr Harmless kHarmless[] = {
      {"consumed_inputs", true, 0}, {"momentum", true, 0},           {"stash_type", true, 0},
      {"is_test", true, 0},         {"training_mode", false, 0},     {"spatial", false, 1},
      {"storage_order", false, 0},  {"precision", false, 0},         {"layout", false, 0},
      {"ceil_mode", false, 0},      {"select_last_index", false, 0}, {"softmax_precision", true, 0}};
  Attrs attrs;
  for (const auto& [source_name, a] : node.attributes()) {
    if (std::find(skip.begin(), skip.end(), source_name) != skip.end()) continue;
    const std::string name = snake_case(source_name);
    const AttrDef* def = std::find_if(op.attrs.begin(), op.attrs.end(),
                                      [&](const AttrDef& d) { return std::string_view(d.name) == name; });
    if (def == op.attrs.end()) {
      const auto* h = std::find_if(std::begin(kHarmless), std::end(kHarmless),
                                   [&](const Harmless& harmless) { return harmless.name == name; });
      if (h != std::end(kHarmless) && (h->any || a->i() == h->value)) continue;
      return refuse(str_cat("attribute '", source_name, "' is not supported"), kind_of(*a) == A::INT ? str_cat(a->i())
                                                                               : kind_of(*a) == A::STRING
                                                                                   ? a->s()
                                                                                   : std::string());
    }
    switch (def->kind) {
      case AttrKind::kInt:
        PINNACE_TRY(check_kind(*a, A::INT));
        attrs.emplace_back(name, a->i());
        break;
      case AttrKind::kFloat:
        PINNACE_TRY(check_kind(*a, A::FLOAT));
        attrs.emplace_back(name, static_cast<double>(a->f()));
        break;
      case AttrKind::kString:
        if (kind_of(*a) == A::INT) {  // an element type
          if (a->i() == 0) break;     // UNDEFINED: as if it were absent
          const auto dtype = dtype_of(static_cast<int32_t>(std::clamp<int64_t>(a->i(), -1, 1000)));
          if (!dtype) {
            return refuse(str_cat("attribute '", source_name, "': element type is not supported"),
                          data_type_text(static_cast<int32_t>(std::clamp<int64_t>(a->i(), -1, 1000))));
          }
          attrs.emplace_back(name, std::string(dtype_code(*dtype)));
          break;
        }
        PINNACE_TRY(check_kind(*a, A::STRING));
        attrs.emplace_back(name, name == "auto_pad" ? small_letters(a->s()) : a->s());
        break;
      case AttrKind::kInts:
        PINNACE_TRY(check_kind(*a, A::INTS));
        attrs.emplace_back(name, std::vector<int64_t>(a->ints().begin(), a->ints().end()));
        break;
      case AttrKind::kFloats:
        PINNACE_TRY(check_kind(*a, A::FLOATS));
        attrs.emplace_back(name, std::vector<double>(a->floats().begin(), a->floats().end()));
        break;
      case AttrKind::kStrings:
        PINNACE_TRY(check_kind(*a, A::STRINGS));
        attrs.emplace_back(name, std::vector<std::string>(a->strings().begin(), a->strings().end()));
        if (name == "activations") {  // of recurrent layers, HardSigmoid: hard_sigmoid
          for (std::string& each : std::get<std::vector<std::string>>(attrs.back().second)) each = snake_case(each);
        }
        break;
      case AttrKind::kGraph:
        return refuse(str_cat("attribute '", source_name, "' is a graph"));
    }
  }
  return attrs;
}

// ------------------------------------------------------------------------------------------------------- constants

Result<ValueId> SourceNode::constant_ints(std::span<const int64_t> values) {
  PINNACE_ASSIGN(ConstantPtr data, Constant::copy_of(values.data(), values.size_bytes()));
  return scope_.builder.add_constant(str_cat(name_, "/ints"),
                                     TensorType{DType::kI64, {static_cast<int64_t>(values.size())}, nullptr},
                                     std::move(data));
}

Result<ValueId> SourceNode::constant_int(int64_t value) {
  PINNACE_ASSIGN(ConstantPtr data, Constant::copy_of(&value, sizeof value));
  return scope_.builder.add_constant(str_cat(name_, "/int"), TensorType{DType::kI64, {}, nullptr}, std::move(data));
}

Result<ValueId> SourceNode::constant_scalar(DType dtype, double value) {
  if (!(dtypes(dtype) & kAny))
    return refuse("values of this type are stored, not computed with", std::string(dtype_name(dtype)));
  const bool fits = visit(dtype, [&](auto zero) {
    using W = Wide<decltype(zero)>;
    if constexpr (std::is_integral_v<W>) {
      // One beyond the largest, which of 64 bits is no double itself.
      const double end = std::ldexp(1.0, std::numeric_limits<W>::digits);
      return value >= static_cast<double>(std::numeric_limits<W>::lowest()) && value < end;
    }
    return true;
  });
  if (!fits) return refuse(str_cat("a number that has to be ", dtype_name(dtype), " does not fit it"), str_cat(value));
  PINNACE_ASSIGN(ConstantPtr data, visit(dtype, [&](auto zero) {
                   using T = decltype(zero);
                   const T element = narrow<T>(static_cast<Wide<T>>(value));
                   return Constant::copy_of(&element, sizeof element);
                 }));
  return scope_.builder.add_constant(str_cat(name_, "/value"), TensorType{dtype, {}, nullptr}, std::move(data));
}

Result<ValueId> SourceNode::as_scalar(ValueId id) {
  const TensorType t = type(id);
  if (t.rank() == 0 || t.elements() != 1) return id;
  GraphBuilder& builder = scope_.builder;
  if (builder.data(id)) {
    return builder.add_constant(str_cat(builder.graph.value(id).name, "/scalar"), TensorType{t.dtype, {}, nullptr},
                                builder.data(id));
  }
  PINNACE_ASSIGN(const ValueId shape, constant_ints({}));
  return emit("reshape", {id, shape});
}

Result<ValueId> SourceNode::constant_tensor(const proto::TensorProto& tensor, std::string name) {
  PINNACE_ASSIGN(Tensor read, read_tensor(tensor, label(), scope_.builder.import.external));
  return scope_.builder.add_constant(std::move(name), std::move(read.type), std::move(read.data));
}

// ----------------------------------------------------------------------------------------------------------- nodes

Result<const OpDef*> SourceNode::find(std::string_view op) const {
  const OpDef* found = scope_.builder.import.options.ops.find(op);
  if (!found) return refuse("operator not in this build", std::string(op));
  return found;
}

Result<Node*> SourceNode::add(const OpDef& op, std::string name, std::vector<ValueId> inputs, Attrs attrs,
                              std::vector<ValueId> outputs) {
  // Control flow keeps its places: what it captures follows them.
  while (op.reference && !inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
  Node* node = scope_.builder.graph.add_node(std::string(op.name), op.version, std::move(name), std::move(inputs),
                                             std::move(outputs));
  node->source = source_of(proto_);
  for (auto& [key, value] : attrs) {
    if (!is_default(op, key, value)) node->set_attr(key, std::move(value));
  }
  PINNACE_TRY(scope_.builder.infer_last(*node));
  return node;
}

Result<std::vector<ValueId>> SourceNode::emit_many(std::string_view op, std::vector<ValueId> inputs, Attrs attrs,
                                                   int outputs) {
  PINNACE_ASSIGN(const OpDef* def, find(op));
  const std::string name = str_cat(name_, "/", op, made_++ ? str_cat("_", made_) : "");
  std::vector<ValueId> ids;
  for (int i = 0; i < outputs; ++i) ids.push_back(scope_.builder.graph.add_value(name, {}));
  PINNACE_TRY(add(*def, name, std::move(inputs), std::move(attrs), ids).status());
  return ids;
}

Result<ValueId> SourceNode::emit(std::string_view op, std::vector<ValueId> inputs, Attrs attrs) {
  PINNACE_ASSIGN(std::vector<ValueId> ids, emit_many(op, std::move(inputs), std::move(attrs), 1));
  return ids[0];
}

Status SourceNode::finish(std::string_view op, std::vector<ValueId> inputs, Attrs attrs, int least) {
  PINNACE_ASSIGN(const OpDef* def, find(op));
  if (def->max_outputs >= 0 && output_count() > def->max_outputs) {
    return refuse(str_cat("output ", def->max_outputs, " is not supported"), proto_.output(def->max_outputs));
  }
  std::vector<ValueId> outputs;
  for (int i = 0; i < std::max({output_count(), def->min_outputs, least}); ++i) {
    const std::string name = wants(i) ? scope_.frame.prefix + proto_.output(i) : str_cat(name_, "/unused");
    outputs.push_back(scope_.builder.graph.add_value(name, {}));
    if (wants(i)) scope_.builder.names.values.emplace(outputs.back(), name);
  }
  PINNACE_TRY(add(*def, name_, std::move(inputs), std::move(attrs), outputs).status());
  for (size_t i = 0; i < outputs.size(); ++i) PINNACE_TRY(set_output(static_cast<int>(i), outputs[i]));
  return {};
}

Status SourceNode::set_output(int i, ValueId id) {
  return wants(i) ? scope_.define(proto_.output(i), id) : Status();
}

}  // namespace pinnace::onnx
