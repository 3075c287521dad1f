// The list of operators; schema checks; NodeView's accessors; shape rules shared by many operators.
#include "ops/op.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/cancel.h"
#include "ops/element.h"

namespace pinnace {

#define OP(name) extern const OpDef name##_op;
#include "ops/ops.inc"
#undef OP

namespace {
constexpr const OpDef* kOps[] = {
#define OP(name) &name##_op,
#include "ops/ops.inc"
#undef OP
};

const AttrDef* find_attr(const OpDef& op, std::string_view name) {
  for (const AttrDef& def : op.attrs) {
    if (def.name == name) return &def;
  }
  return nullptr;
}

std::string types_text(DTypes types) {
  std::string text;
  for (int i = 0; i < kDTypeCount; ++i) {
    if (types >> i & 1) text += str_cat(text.empty() ? "" : " ", dtype_name(static_cast<DType>(i)));
  }
  return text;
}

/// In a build for some models an element type may be missing.
Status check_built(const Node& node, DType dtype) {
  if (built_for(dtype)) return {};
  return unsupported("element type ", dtype_name(dtype), " of ", node.op, " '", node.name,
                     "' is not in this build, which was made for models without it");
}

const InputDef& input_def(const OpDef& op, size_t i) {
  return op.inputs.begin()[std::min(i, op.inputs.size() - 1)];
}
}  // namespace

std::span<const OpDef* const> all_ops() {
  return kOps;
}

const OpDef* find_op(std::string_view name) {
  const auto at = std::lower_bound(std::begin(kOps), std::end(kOps), name,
                                   [](const OpDef* op, std::string_view wanted) { return op->name < wanted; });
  return at != std::end(kOps) && (*at)->name == name ? *at : nullptr;
}

Status check_node(const Node& node, const OpDef& op, std::span<const TensorType* const> types) {
  const auto fail = [&](const auto&... parts) { return invalid(node.op, " '", node.name, "': ", parts...); };
  const bool variadic = op.inputs.size() > 0 && std::prev(op.inputs.end())->arity == Arity::kVariadic;
  if (!variadic && types.size() > op.inputs.size()) {
    return fail("takes at most ", op.inputs.size(), " inputs, has ", types.size());
  }
  DType letters[128];
  bool letter_used[128] = {};
  for (size_t i = 0; i < std::max(types.size(), op.inputs.size()); ++i) {
    const InputDef& def = input_def(op, i);
    if (i >= types.size() || !types[i]) {
      if (def.arity == Arity::kRequired) return fail("input ", i, " '", def.name, "' is required");
      if (def.arity == Arity::kVariadic && i < types.size()) {
        return fail("input ", i, " of '", def.name, "' is left out");
      }
      continue;
    }
    const TensorType& type = *types[i];
    PINNACE_TRY(check_built(node, type.dtype));
    if (!(def.types >> static_cast<int>(type.dtype) & 1)) {
      return fail("input ", i, " '", def.name, "' is ", type, ", takes ", types_text(def.types));
    }
    if (type.quantized() && !(def.types & (kI8 | kU8))) {  // indices, biases: their scale would be lost silently
      return fail("input ", i, " '", def.name, "' is quantised, ", type, "; takes plain ", types_text(def.types));
    }
    if (const auto letter = static_cast<unsigned char>(def.type_letter)) {
      if (letter_used[letter] && letters[letter] != type.dtype) {
        return fail("input ", i, " '", def.name, "' is ", type, ", must be ", dtype_name(letters[letter]),
                    " as the inputs before it");
      }
      letter_used[letter] = true;
      letters[letter] = type.dtype;
    }
  }
  for (const auto& [name, value] : node.attrs) {
    if (op.context) break;  // an application's operator takes any attributes
    const AttrDef* def = find_attr(op, name);
    if (!def) return fail("has no attribute '", name, "'");
    if (def->kind != attr_kind(value)) {
      return fail("attribute '", name, "' is of kind ", attr_kind_name(attr_kind(value)), ", must be ",
                  attr_kind_name(def->kind));
    }
  }
  for (const AttrDef& def : op.attrs) {
    if (def.required && !node.attr(def.name)) return fail("attribute '", def.name, "' is required");
  }
  const auto outputs = static_cast<int>(node.outputs.size());
  if (outputs < op.min_outputs || (op.max_outputs >= 0 && outputs > op.max_outputs)) {
    return fail("has ", outputs, " outputs, must have ", op.min_outputs,
                op.max_outputs == op.min_outputs ? ""
                : op.max_outputs < 0             ? " or more"
                                                 : " to ",
                op.max_outputs > op.min_outputs ? str_cat(op.max_outputs) : "");
  }
  return {};
}

namespace {
Status run_rule(const NodeView& node, std::span<TensorType> outputs) {
  if (!node.op().type) return node.op().types(node, outputs);
  PINNACE_ASSIGN(outputs[0], node.op().type(node));
  return {};
}
}  // namespace

Result<std::vector<TensorType>> infer_node_types(const NodeView& node) {
  std::vector<const TensorType*> types;
  for (int i = 0; i < node.input_count(); ++i) types.push_back(node.has_input(i) ? &node.input(i) : nullptr);
  PINNACE_TRY(check_node(node.node(), node.op(), types));
  std::vector<TensorType> outputs(node.node().outputs.size());
  if (node.op().has(Trait::kRunsToCount)) {  // which may take as long as the operator
    const LoopsMayStop loops;
    const Status status = run_rule(node, outputs);
    PINNACE_TRY(check_stopped(node.label()));  // what it complains of may be what it has not computed
    PINNACE_TRY(status);
  } else {
    PINNACE_TRY(run_rule(node, outputs));
  }
  for (const TensorType& type : outputs) {
    PINNACE_TRY(check_built(node.node(), type.dtype));
    if (type.quantized() && kFloats >> static_cast<int>(type.dtype) & 1) {
      return node.error("its output is declared quantised, but is made of ", dtype_name(type.dtype));
    }
    // Sizes are multiplied without checks from here on.
    int64_t bits = dtype_bits(type.dtype);
    for (const Dim& d : type.shape) {
      const int64_t size = d.known() ? d.size : 1;
      if (size > 0 && bits > (std::numeric_limits<int64_t>::max() >> 4) / size) {
        return node.error("its output ", type, " is larger than memory can be");
      }
      bits *= std::max<int64_t>(size, 1);
    }
  }
  return outputs;
}

std::string NodeView::label() const {
  return str_cat(node_.op, " '", node_.name, "'");
}

Status NodeView::error_of(const PartKind* kinds, const Part* parts) const {
  std::string text = label();
  text += ": ";
  append_parts(text, kinds, parts);
  return Status(Code::kInvalidArgument, std::move(text));
}

std::shared_ptr<const Quantization> NodeView::output_quantization(int i) const {
  const auto index = static_cast<size_t>(i);
  return index < declared_.size() && declared_[index] ? declared_[index]->quantization : nullptr;
}

std::optional<std::vector<int64_t>> NodeView::input_ints(int i) const {
  const void* data = input_data(i);
  if (!has_input(i) || !input(i).concrete()) return std::nullopt;
  if (input(i).elements() == 0) return std::vector<int64_t>();  // all of them are known
  if (!data) {
    asked_for_unknown_ints_ |= (dtypes(input(i).dtype) & (kInts | kBool)) != 0;
    return std::nullopt;
  }
  std::vector<int64_t> ints(static_cast<size_t>(input(i).elements()));
  for (size_t k = 0; k < ints.size(); ++k) {
    switch (input(i).dtype) {
      case DType::kI64:
        ints[k] = static_cast<const int64_t*>(data)[k];
        break;
      case DType::kI32:
        ints[k] = static_cast<const int32_t*>(data)[k];
        break;
      case DType::kI16:
        ints[k] = static_cast<const int16_t*>(data)[k];
        break;
      case DType::kU8:
        ints[k] = static_cast<const uint8_t*>(data)[k];
        break;
      case DType::kI8:
        ints[k] = static_cast<const int8_t*>(data)[k];  // NOLINT(bugprone-signed-char-misuse): a number
        break;
      case DType::kU16:
        ints[k] = static_cast<const uint16_t*>(data)[k];
        break;
      case DType::kU32:
        ints[k] = static_cast<const uint32_t*>(data)[k];
        break;
      case DType::kU64:
        if (static_cast<const uint64_t*>(data)[k] > INT64_MAX) return std::nullopt;
        ints[k] = static_cast<int64_t>(static_cast<const uint64_t*>(data)[k]);
        break;
      case DType::kBool:
        ints[k] = static_cast<const uint8_t*>(data)[k] != 0;
        break;
      default:
        return std::nullopt;
    }
  }
  return ints;
}

std::optional<std::vector<double>> NodeView::input_floats(int i) const {
  const void* data = input_data(i);
  if (!has_input(i) || !input(i).concrete()) return std::nullopt;
  if (input(i).elements() == 0) return std::vector<double>();
  if (!data) return std::nullopt;
  std::vector<double> floats(static_cast<size_t>(input(i).elements()));
  for (size_t k = 0; k < floats.size(); ++k) {
    switch (input(i).dtype) {
      case DType::kF32:
        floats[k] = static_cast<const float*>(data)[k];
        break;
      case DType::kF64:
        floats[k] = static_cast<const double*>(data)[k];
        break;
      case DType::kF16:
        floats[k] = static_cast<const Half*>(data)[k];
        break;
      case DType::kBF16:
        floats[k] = static_cast<const BFloat16*>(data)[k];
        break;
      default:
        return std::nullopt;
    }
  }
  return floats;
}

std::optional<std::vector<KnownInt>> NodeView::input_known(int i) const {
  if (auto ints = input_ints(i)) {
    std::vector<KnownInt> all(ints->size());
    for (size_t k = 0; k < all.size(); ++k) all[k] = {true, (*ints)[k], -1};
    return all;
  }
  const auto index = static_cast<size_t>(i);
  if (index < known_.size() && known_[index] && input(i).elements() == static_cast<int64_t>(known_[index]->size())) {
    return *known_[index];
  }
  return std::nullopt;
}

namespace {
const AttrDef& require_attr(const OpDef& op, std::string_view name, [[maybe_unused]] AttrKind kind) {
  const AttrDef* def = find_attr(op, name);
  assert(def && def->kind == kind && "the attribute is not in the schema");
  return *def;
}
}  // namespace

int64_t NodeView::attr_int(std::string_view name) const {
  const AttrDef& def = require_attr(op_, name, AttrKind::kInt);
  const Attr* attr = node_.attr(name);
  return attr ? std::get<int64_t>(*attr) : def.int_default();
}

double NodeView::attr_float(std::string_view name) const {
  const AttrDef& def = require_attr(op_, name, AttrKind::kFloat);
  const Attr* attr = node_.attr(name);
  return attr ? std::get<double>(*attr) : def.float_default();
}

std::string_view NodeView::attr_string(std::string_view name) const {
  const AttrDef& def = require_attr(op_, name, AttrKind::kString);
  const Attr* attr = node_.attr(name);
  return attr ? std::string_view(std::get<std::string>(*attr)) : def.string_default();
}

std::span<const int64_t> NodeView::attr_ints(std::string_view name) const {
  require_attr(op_, name, AttrKind::kInts);
  const Attr* attr = node_.attr(name);
  if (!attr) return {};
  return std::get<std::vector<int64_t>>(*attr);
}

std::span<const double> NodeView::attr_floats(std::string_view name) const {
  require_attr(op_, name, AttrKind::kFloats);
  const Attr* attr = node_.attr(name);
  if (!attr) return {};
  return std::get<std::vector<double>>(*attr);
}

std::span<const std::string> NodeView::attr_strings(std::string_view name) const {
  require_attr(op_, name, AttrKind::kStrings);
  const Attr* attr = node_.attr(name);
  if (!attr) return {};
  return std::get<std::vector<std::string>>(*attr);
}

const Graph& NodeView::attr_graph(std::string_view name) const {
  require_attr(op_, name, AttrKind::kGraph);
  return *std::get<GraphPtr>(*node_.attr(name));
}

Result<int> NodeView::axis(int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank) return error("axis ", axis, " is outside rank ", rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<std::vector<int>> NodeView::axes(std::span<const int64_t> list, int rank) const {
  std::vector<int> sorted;
  for (int64_t a : list) {
    PINNACE_ASSIGN(const int checked, axis(a, rank));
    sorted.push_back(checked);
  }
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return error("axis ", *twice, " is named twice in ", list_text(list));
  return sorted;
}

Result<Shape> broadcast_shapes(const NodeView& node, const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {  // i counts from the last dimension
    const Dim x = i < a.size() ? a[a.size() - 1 - i] : Dim(1);
    const Dim y = i < b.size() ? b[b.size() - 1 - i] : Dim(1);
    Dim& d = out[out.size() - 1 - i];
    if (x == y && (x.known() || x.symbol >= 0)) {
      d = x;
    } else if (x.known() && x.size == 1) {
      d = y;
    } else if (y.known() && y.size == 1) {
      d = x;
    } else if (x.known() && y.known()) {
      return node.error("shapes do not broadcast: ", to_string(a), " and ", to_string(b));
    } else if (x.known()) {
      d = x;  // y is unknown: it can only be 1 or x
    } else if (y.known()) {
      d = y;
    } else {
      d = x.max >= 0 && y.max >= 0 ? Dim::unknown(std::max(x.max, y.max)) : Dim();
    }
  }
  return out;
}

Status check_quantized(const NodeView& node, int first, int last) {
  const auto declared = node.output_quantization(0);
  for (int i = first; i < last; ++i) {
    if (!node.has_input(i)) continue;
    const TensorType& type = node.input(i);
    if (type.quantized() != (declared != nullptr)) {
      return node.error("input ", i, " is ", type, type.quantized() ? "; the output" : " without quantisation",
                        declared ? ", but the output is declared quantised" : " must be declared quantised too");
    }
    if (declared && (type.quantization->scales.size() != 1 || declared->scales.size() != 1)) {
      return node.error("input ", i, " is ", type, "; input and output must be quantised per tensor");
    }
  }
  return {};
}

Status refuse_quantized(const NodeView& node) {
  for (int i = 0; i < node.input_count(); ++i) {
    if (node.has_input(i) && node.input(i).quantized()) {
      return node.error("input ", i, " is quantised, ", node.input(i), "; takes plain tensors only");
    }
  }
  if (node.output_quantization(0)) return node.error("its output is declared quantised, but is a plain tensor");
  return {};
}

Result<TensorType> same_type(const NodeView& node) {
  PINNACE_TRY(check_quantized(node, 0, 1));
  return TensorType{node.input(0).dtype, node.input(0).shape, node.output_quantization(0)};
}

Result<TensorType> broadcast_type(const NodeView& node, int first, int last) {
  PINNACE_TRY(check_quantized(node, first, last));
  Shape shape = node.input(first).shape;
  for (int i = first + 1; i < last; ++i) {
    PINNACE_ASSIGN(shape, broadcast_shapes(node, shape, node.input(i).shape));
  }
  return TensorType{node.input(first).dtype, std::move(shape), node.output_quantization(0)};
}

Result<TensorType> binary_type(const NodeView& node) {
  return broadcast_type(node, 0, 2);
}

Result<TensorType> variadic_type(const NodeView& node) {
  if (node.input_count() == 0) return node.error("needs one input or more");
  return broadcast_type(node, 0, node.input_count());
}

Result<TensorType> compare_type(const NodeView& node) {
  const TensorType &a = node.input(0), &b = node.input(1);
  for (const TensorType* type : {&a, &b}) {
    if (a.quantized() != b.quantized() || (type->quantized() && type->quantization->scales.size() != 1)) {
      return node.error("compares ", a, " and ", b, "; both must be quantised per tensor or both plain");
    }
  }
  PINNACE_ASSIGN(Shape shape, broadcast_shapes(node, a.shape, b.shape));
  return TensorType{DType::kBool, std::move(shape), nullptr};
}

double elements_if_known(const TensorType& type) {
  double elements = 1;
  for (const Dim& d : type.shape) elements *= d.known() ? static_cast<double>(d.size) : 1;
  return elements;
}

double last_if_known(const TensorType& type) {
  return type.shape.empty() || !type.shape.back().known() ? 1 : static_cast<double>(type.shape.back().size);
}

}  // namespace pinnace
