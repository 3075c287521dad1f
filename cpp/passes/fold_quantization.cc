// fold_quantization: dequantize_linear -> operator -> quantize_linear becomes the operator on quantised types, for
// operators with Trait::kFoldsQuantization. relu or
// clip between a product or add and quantize_linear goes along, and so does a change of shape behind another operator.
// A mean of whole planes is a global_average_pool; nothing in between, a change of scale, is a clip without bounds.
// Plain and quantised integers meet in casts that keep the bytes; between two folded operators none remains. A
// product's bias, dequantised or a constant, is rounded to int32 at scale s_x * s_w. Conditions: scales and zero points
// are constants, f32, per tensor (weights also per channel), without blocks; results i8 or u8; inner values are read
// nowhere else and leave nowhere; the operator's own rules accept the types. Bound: the float result and the exact one
// may round to neighbouring integers, so one step of each folded result's scale.
//
// A gather of rows of a dequantised table becomes a gather of stored rows, and of their scales and zero points, which
// are then dequantised: exact, and the table is never dequantised as a whole.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/dtype_code.h"
#include "ops/activation.h"
#include "ops/element.h"
#include "passes/rewrite.h"

namespace pinnace {
namespace {

/// A constant's numbers, or the product of two constants, which is how importers state the scale of a bias.
std::optional<std::vector<double>> known_numbers(const Rewrite& rewrite, ValueId id) {
  if (auto found = rewrite.numbers(id)) return found;
  Node* mul = rewrite.producer(id, "mul");
  if (!mul) return std::nullopt;
  auto a = rewrite.numbers(mul->inputs[0]), b = rewrite.numbers(mul->inputs[1]);
  if (!a || !b || a->empty() || b->empty()) return std::nullopt;
  if (a->size() < b->size()) std::swap(a, b);
  if (b->size() != 1 && b->size() != a->size()) return std::nullopt;
  for (size_t i = 0; i < a->size(); ++i) (*a)[i] *= (*b)[b->size() > 1 ? i : 0];
  return a;
}

/// What the scale and zero point of a quantize_linear or dequantize_linear say about integers of that rank.
std::shared_ptr<const Quantization> quantization_of(const Rewrite& rewrite, const Node& node, int rank) {
  if (int_or(node, "block_size", 0) != 0 || rewrite.type(node.inputs[1]).dtype != DType::kF32) return nullptr;
  const std::string_view precision = string_or(node, "precision", "");
  if (!precision.empty() && precision != "f32") return nullptr;
  const auto scales = rewrite.numbers(node.inputs[1]);
  if (!scales || scales->empty()) return nullptr;
  auto found = std::make_shared<Quantization>();
  for (double s : *scales) {
    if (!(s > 0) || !std::isfinite(s)) return nullptr;
    found->scales.push_back(static_cast<float>(s));
  }
  found->zero_points.assign(scales->size(), 0);
  if (node.inputs.size() > 2 && node.inputs[2] != kNoValue) {
    ValueId zero = node.inputs[2];
    const DType dtype = rewrite.type(zero).dtype;
    // Importers state zero points of channels as a cast of what the source has, mostly int64.
    if (const Node* cast = rewrite.producer(zero, "cast")) zero = cast->inputs[0];
    const Value& value = rewrite.graph().value(zero);
    if (!value.constant || value.type.elements() != static_cast<int64_t>(scales->size())) return nullptr;
    if (const DTypes small = dtypes(DType::kI8, DType::kU8), wide = kI32 | kI64;
        !(dtypes(dtype) & small) || !(dtypes(value.type.dtype) & (small | wide))) {
      return nullptr;
    }
    const IntRange range = int_range(dtype);
    for (size_t i = 0; i < scales->size(); ++i) {
      const int64_t number = visit(value.type.dtype, [&](auto kind) {
        return static_cast<int64_t>(widen(reinterpret_cast<const decltype(kind)*>(value.constant->data())[i]));
      });
      if (number < range.min || number > range.max) return nullptr;
      found->zero_points[i] = static_cast<int32_t>(number);
    }
  }
  if (scales->size() > 1) {
    const int64_t axis = int_or(node, "axis", 1);
    found->axis = static_cast<int32_t>(axis < 0 ? axis + rank : axis);
  }
  return found;
}

bool is_byte(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kU8;
}

/// An input of the folded operator before it is made.
struct Operand {
  ValueId id = kNoValue;       ///< as it is, unless dequantize is set
  Node* dequantize = nullptr;  ///< makes the float value; the operand is its input, with `type`
  Node* transpose = nullptr;   ///< stands between dequantize and the operator
  TensorType type;             ///< as the operator sees it
};

bool quantized_operand(const Rewrite& rewrite, ValueId id, Operand& operand) {
  Node* node = rewrite.producer(id);
  if (node && node->op == "transpose") {
    operand.transpose = node;
    node = rewrite.producer(node->inputs[0]);
  }
  if (!node || node->op != "dequantize_linear") return false;
  const TensorType& from = rewrite.type(node->inputs[0]);
  if (!is_byte(from.dtype) || from.quantized() || rewrite.type(node->outputs[0]).dtype != DType::kF32) return false;
  // Only weights are transposed here: then constants stay constants.
  if (operand.transpose && (!rewrite.graph().value(node->inputs[0]).constant ||
                            ints_or_empty(*operand.transpose, "perm").size() != from.shape.size())) {
    return false;
  }
  operand.dequantize = node;
  auto quantization = quantization_of(rewrite, *node, from.rank());
  if (!quantization) return false;
  operand.type = {from.dtype, from.shape, std::move(quantization)};
  if (!operand.transpose) return true;
  const auto perm = ints_or_empty(*operand.transpose, "perm");
  auto moved = std::make_shared<Quantization>(*operand.type.quantization);
  for (size_t i = 0; i < perm.size(); ++i) {
    operand.type.shape[i] = from.shape[static_cast<size_t>(perm[i])];
    if (operand.type.quantization->axis == perm[i]) moved->axis = static_cast<int32_t>(i);
  }
  operand.type.quantization = std::move(moved);
  return true;
}

/// The operand as a value: a constant with the type, what a folded operator made, or a cast that keeps the bytes.
ValueId make_value(Rewrite& rewrite, const Operand& operand, Node& before) {
  if (!operand.dequantize) return operand.id;
  Graph& graph = rewrite.graph();
  const ValueId from = operand.dequantize->inputs[0];
  TensorType type{rewrite.type(from).dtype, rewrite.type(from).shape,
                  quantization_of(rewrite, *operand.dequantize, rewrite.type(from).rank())};
  const std::string name = graph.value(from).name + ".quantized";
  Node* maker = rewrite.producer(from, "cast");
  ValueId id = kNoValue;
  if (graph.value(from).constant) {
    id = rewrite.add_constant_like(name, std::move(type), graph.value(from).constant);
  } else if (maker && rewrite.type(maker->inputs[0]) == type) {
    id = maker->inputs[0];
  } else {
    const std::string to(dtype_code(type.dtype));
    id = rewrite.insert_before(before, "cast", {from}, {{"to", to}}, std::move(type), name);
  }
  if (!operand.transpose) return id;
  return rewrite.insert_before(before, "transpose", {id}, operand.transpose->attrs, operand.type, name + ".transposed");
}

/// The bias of a product at scale s_x * s_w, or nothing where it is unknown, does not fit, or scales that differ by
/// column would have to differ by row too: then it must be one row.
std::optional<std::vector<double>> bias_of(const Rewrite& rewrite, ValueId id, const Quantization& x,
                                           const Quantization& w) {
  const TensorType& type = rewrite.type(id);
  const auto columns = static_cast<int64_t>(w.scales.size());
  const bool by_column = columns > 1;
  if (by_column && (type.rank() == 0 || type.shape.back() != Dim(columns) || type.elements() != columns)) {
    return std::nullopt;
  }
  if (!rewrite.affords({DType::kI32, type.shape, nullptr})) return std::nullopt;
  std::optional<std::vector<double>> numbers = rewrite.numbers(id);
  if (Node* node = rewrite.producer(id); !numbers && node && node->op == "dequantize_linear") {
    numbers = rewrite.numbers(node->inputs[0]);
    const auto scales = known_numbers(rewrite, node->inputs[1]);
    if (!numbers || !scales || int_or(*node, "block_size", 0) != 0) return std::nullopt;
    if (scales->size() != 1 && scales->size() != numbers->size()) return std::nullopt;
    if (node->inputs.size() > 2 && node->inputs[2] != kNoValue) {  // one per tensor or per channel, all 0
      const auto zeros = rewrite.numbers(node->inputs[2]);
      if (!zeros || std::any_of(zeros->begin(), zeros->end(), [](double z) { return z != 0; })) return std::nullopt;
    }
    for (size_t i = 0; i < numbers->size(); ++i) (*numbers)[i] *= (*scales)[scales->size() > 1 ? i : 0];
  }
  if (!numbers) return std::nullopt;
  for (size_t i = 0; i < numbers->size(); ++i) {
    const double scale = static_cast<double>(x.scales[0]) * static_cast<double>(w.scales[by_column ? i : 0]);
    (*numbers)[i] = std::nearbyint((*numbers)[i] / scale);
    if (!(std::fabs((*numbers)[i]) < 0x1p31)) return std::nullopt;
  }
  return numbers;
}

/// relu or clip with constant limits as an activation of `node`; false where they are not constant.
bool set_clamp(const Rewrite& rewrite, const Node& clamp, Node& node) {
  const auto activation = rewrite.unary(clamp);
  if (!activation) return false;
  node.set_attr("activation", std::string(unary_name(activation->kind)));
  if (activation->kind == UnaryKind::kClip) {
    node.set_attr("activation_params", std::vector<double>{activation->p, activation->q});
  }
  return true;
}

/// A node that will follow the folded one, on quantised values.
struct After {
  std::string_view op;
  std::vector<ValueId> others;  ///< inputs after the first
  decltype(Node::attrs) attrs;
  TensorType type;
};

/// A mean over dimensions 2, 3, ... as global_average_pool, whose result is y, and a squeeze where those vanish. False
/// for other means.
bool set_mean(const Rewrite& rewrite, const Node& mean, Node& trial, TensorType& y, std::vector<After>& after) {
  const Shape& x = rewrite.type(mean.inputs[0]).shape;
  const auto rank = static_cast<int64_t>(x.size());
  const auto axes = mean.inputs.size() > 1 ? rewrite.numbers(mean.inputs[1]) : std::nullopt;
  if (!axes || rank < 3 || static_cast<int64_t>(axes->size()) != rank - 2) return false;
  std::vector<bool> reduced(x.size(), false);
  for (const double a : *axes) {  // the operator's own rule has accepted them
    const auto axis = static_cast<int64_t>(a) + (a < 0 ? rank : 0);
    if (axis < 2) return false;
    reduced[static_cast<size_t>(axis)] = true;
  }
  if (std::count(reduced.begin(), reduced.end(), true) != rank - 2) return false;
  if (int_or(mean, "keepdims", 1) == 0 && rewrite.type(mean.inputs[1]).dtype != DType::kI64) return false;
  if (int_or(mean, "keepdims", 1) == 0) after.insert(after.begin(), {"squeeze", {mean.inputs[1]}, {}, y});
  y.shape.assign(x.size(), Dim(1));
  std::copy_n(x.begin(), 2, y.shape.begin());
  trial.op = "global_average_pool";
  trial.attrs.clear();
  return true;
}

/// The operator's own rules on the node that would be made: is its result `y`?
bool accepted(const Rewrite& rewrite, const Node& node, const OpDef& op, const std::vector<Operand>& operands,
              const TensorType& y) {
  std::vector<const TensorType*> types;
  std::vector<const void*> data;
  for (const Operand& operand : operands) {
    types.push_back(operand.id == kNoValue ? nullptr : &operand.type);
    const bool constant = operand.id != kNoValue && rewrite.graph().value(operand.id).constant;
    data.push_back(constant ? rewrite.graph().value(operand.id).constant->data() : nullptr);
  }
  const TensorType* declared[] = {&y};
  const auto result = infer_node_types(NodeView(node, op, types, data, declared));
  return result.ok() && result->size() == 1 && (*result)[0] == y;
}

Result<bool> fold(Rewrite& rewrite, Node& last, const PassContext& context) {
  const TensorType plain = rewrite.type(last.outputs[0]);
  if (!is_byte(plain.dtype)) return false;
  TensorType y{plain.dtype, plain.shape, quantization_of(rewrite, last, plain.rank())};
  if (!y.quantization || !rewrite.inner(last.inputs[0])) return false;
  Node* main = rewrite.producer(last.inputs[0]);
  Node* view = nullptr;
  std::vector<After> after;
  if (main && rewrite.has(*main, Trait::kReshapes) && y.quantization->axis < 0 && rewrite.inner(main->inputs[0])) {
    Node* before = rewrite.producer(main->inputs[0]);
    if (before && before->op != "dequantize_linear" && before->outputs.size() == 1) {
      after.push_back({main->op, {main->inputs.begin() + 1, main->inputs.end()}, main->attrs, y});
      y.shape = rewrite.type(main->inputs[0]).shape;
      view = std::exchange(main, before);
    }
  }
  Node* clamp = nullptr;
  const UnaryKind unary = main ? rewrite.op(*main).unary : UnaryKind::kNone;
  if ((unary == UnaryKind::kRelu || unary == UnaryKind::kClip) && rewrite.inner(main->inputs[0])) {
    Node* before = rewrite.producer(main->inputs[0]);
    if (before && carries_activation(rewrite.op(*before))) clamp = std::exchange(main, before);
  }
  if (!main || main->outputs.size() != 1) return false;
  const bool product = rewrite.has(*main, Trait::kProduct), rescales = main->op == "dequantize_linear";
  const OpDef* op = context.ops.find(rescales ? "clip" : main->op);
  if (!op || (!rescales && !op->has(Trait::kFoldsQuantization))) return false;
  Node trial;
  trial.op = op->name;
  trial.name = main->name;
  if (!rescales) trial.attrs = main->attrs;
  trial.source = main->source;
  trial.outputs = {kNoValue};
  if (clamp && (main->attr("activation") || !set_clamp(rewrite, *clamp, trial))) return false;
  const bool mean = main->op == "reduce_mean";
  if (mean) {
    if (!set_mean(rewrite, *main, trial, y, after)) return false;
    op = context.ops.find(trial.op);
  }
  const bool only_first = main->op == "clip" || main->op == "resize";  // others are bounds, or places
  std::vector<Operand> operands;
  std::optional<std::vector<double>> bias;
  for (size_t i = 0; i < (mean || rescales ? 1 : main->inputs.size()); ++i) {
    Operand operand{.id = rescales ? last.inputs[0] : main->inputs[i]};
    if (operand.id == kNoValue) {
      trial.inputs.push_back(kNoValue);
      operands.push_back(std::move(operand));
      continue;
    }
    if (product && i == 2) {
      if (!operands[0].type.quantized() || !operands[1].type.quantized()) return false;
      bias = bias_of(rewrite, operand.id, *operands[0].type.quantization, *operands[1].type.quantization);
      if (!bias) return false;
      operand.type = {DType::kI32, rewrite.type(operand.id).shape, nullptr};
    } else if (is_float_type(rewrite.type(operand.id).dtype) && !(only_first && i > 0)) {
      if (!quantized_operand(rewrite, operand.id, operand)) return false;
    } else {
      operand.type = rewrite.type(operand.id);
    }
    trial.inputs.push_back(operand.id);
    operands.push_back(std::move(operand));
  }
  if (!accepted(rewrite, trial, *op, operands, y)) return false;
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (bias && i == 2) {
      PINNACE_ASSIGN(const ValueId id, rewrite.add_constant(rewrite.graph().value(last.outputs[0]).name + ".bias",
                                                            DType::kI32, operands[i].type.shape, *bias));
      inputs.push_back(id);
    } else {
      inputs.push_back(make_value(rewrite, operands[i], last));
    }
  }
  const std::string name = rewrite.graph().value(last.outputs[0]).name + ".quantized";
  ValueId result = rewrite.insert_before(last, trial.op, std::move(inputs), trial.attrs, y, name);
  Node* made = rewrite.producer(result);
  made->source = main->source;
  for (After& next : after) {
    next.others.insert(next.others.begin(), result);
    const std::string next_name = str_cat(name, ".", next.op);
    result = rewrite.insert_before(last, next.op, std::move(next.others), std::move(next.attrs), next.type, next_name);
    rewrite.producer(result)->source = main->source;
  }
  const SourceLocation source = last.source;
  rewrite.replace(last, "cast", {result}, {{"to", std::string(dtype_code(plain.dtype))}}, source);
  if (view) rewrite.remove(*view);
  if (clamp) rewrite.remove(*clamp);
  rewrite.remove(*main);
  std::swap(made->name, main->name);  // the source's name goes to the node that stays
  return true;
}

/// A constant of integers in bytes: the value itself, one of four bits unpacked, or integers that are cast to it.
/// kNoValue for others.
ValueId byte_constant(Rewrite& rewrite, ValueId id, const TensorType& type) {
  const Node* cast = rewrite.producer(id, "cast");
  const Value value = rewrite.graph().value(cast ? cast->inputs[0] : id);
  if (!value.constant || !value.constant->check().ok() || value.type.quantized() || !value.type.concrete()) {
    return kNoValue;
  }
  const bool bytes = is_byte(value.type.dtype), packed = dtypes(value.type.dtype) & (kI4 | kU4);
  if (!bytes && !packed && !(dtypes(value.type.dtype) & (kI32 | kI64))) return kNoValue;
  const DType table = rewrite.type(id).dtype;  // a cast to it cuts
  if (bytes && value.type.dtype == type.dtype && table == type.dtype)
    return rewrite.add_constant_like(value.name, type, value.constant);
  std::vector<int8_t> made(static_cast<size_t>(value.type.elements()));
  const TensorView view{&value.type, const_cast<std::byte*>(value.constant->data())};
  for (size_t i = 0; i < made.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const int64_t number = value.type.dtype == DType::kI64 ? view.data<int64_t>()[i] : load_int(view, at);
    const bool packs = table == DType::kI4 || table == DType::kU4;
    made[i] = static_cast<int8_t>(!packs ? number : table == DType::kU4 ? number & 15 : ((number & 15) ^ 8) - 8);
  }
  auto constant = Constant::copy_of(made.data(), made.size());
  return constant ? rewrite.add_constant_like(str_cat(value.name, ".bytes"), type, *constant) : kNoValue;
}

/// gather of dequantize_linear of a constant table, along its rows.
void gather_stored_rows(Rewrite& rewrite, Node& node) {
  Node* dequantize = rewrite.producer(node.inputs[0], "dequantize_linear");
  if (!dequantize || int_or(node, "axis", 0) != 0) return;
  const TensorType table = rewrite.type(dequantize->inputs[0]), result = rewrite.type(node.outputs[0]);
  const bool is_unsigned = dtypes(table.dtype) & (kU8 | kU4);
  if (table.rank() != 2 || table.elements() < 1 || !(dtypes(table.dtype) & (kI8 | kU8 | kI4 | kU4))) return;
  const ValueId scale = dequantize->inputs[1];
  const ValueId zero = dequantize->inputs.size() > 2 ? dequantize->inputs[2] : kNoValue;
  const Value scales = rewrite.graph().value(scale);  // a copy: constants that are added move the graph's values
  if (!scales.constant || scales.type.quantized()) return;
  const int64_t block = int_or(*dequantize, "block_size", 0), axis = int_or(*dequantize, "axis", 1);
  const bool single = scales.type.elements() == 1, along_rows = axis == 1 || axis == -1;
  if (!single && block > 0 && !along_rows) return;
  const bool by_row = !single && (block > 0 || !along_rows);
  const DType dtype = is_unsigned ? DType::kU8 : DType::kI8;
  const ValueId stored = byte_constant(rewrite, dequantize->inputs[0], {dtype, table.shape, nullptr});
  if (stored == kNoValue) return;
  Shape shape = single ? Shape{} : scales.type.shape;
  if (by_row && block == 0) shape.emplace_back(1);
  ValueId zeros = kNoValue;
  if (zero != kNoValue) {
    zeros = byte_constant(rewrite, zero, {dtype, shape, nullptr});
    if (zeros == kNoValue) return;
  }
  const TensorType scale_type{scales.type.dtype, shape, nullptr};
  const ValueId scale_rows = rewrite.add_constant_like(scales.name, scale_type, scales.constant);
  const std::string name = rewrite.graph().value(node.outputs[0]).name;
  const auto rows_of = [&](ValueId from, std::string_view suffix) {
    TensorType type{rewrite.type(from).dtype, result.shape, nullptr};
    type.shape.back() = rewrite.type(from).shape[1];
    return rewrite.insert_before(node, "gather", {from, node.inputs[1]}, {}, std::move(type), str_cat(name, suffix));
  };
  std::vector<ValueId> inputs = {rows_of(stored, ".integers"), by_row ? rows_of(scale_rows, ".scales") : scale_rows};
  if (zeros != kNoValue) inputs.push_back(by_row ? rows_of(zeros, ".zero_points") : zeros);
  decltype(Node::attrs) attrs;
  if (!single) attrs.emplace_back("axis", static_cast<int64_t>(result.rank() - 1));
  if (by_row) attrs.emplace_back("block_size", block > 0 ? block : table.shape[1].size);
  if (const Attr* to = dequantize->attr("output_dtype")) attrs.emplace_back("output_dtype", *to);
  rewrite.replace(node, "dequantize_linear", std::move(inputs), std::move(attrs), node.source);
}

Result<int> run(Graph& graph, const PassContext& context) {
  Rewrite rewrite(graph, context);
  for (Node* node : rewrite.nodes()) {
    if (rewrite.alive(node) && node->op == "gather") gather_stored_rows(rewrite, *node);
  }
  for (Node* node : rewrite.nodes()) {
    if (rewrite.alive(node) && node->op == "quantize_linear") PINNACE_TRY(fold(rewrite, *node, context).status());
  }
  return rewrite.finish();
}

}  // namespace

extern const PassDef fold_quantization_pass;
const PassDef fold_quantization_pass{"fold_quantization", "computes between dequantize and quantize on quantised types",
                                     0.1, run};

}  // namespace pinnace
