// Custom operators: schema of any inputs, attributes passed on as text.
#include "runtime/custom_ops.h"

#include <algorithm>

#include "base/cancel.h"

namespace pinnace {
namespace {

CustomAttributes attributes_of(const NodeView& node) {
  CustomAttributes texts;
  for (const auto& [name, attr] : node.node().attrs) {
    std::string text;
    switch (attr_kind(attr)) {
      case AttrKind::kInt:
        text = str_cat(std::get<int64_t>(attr));
        break;
      case AttrKind::kFloat:
        text = str_cat(std::get<double>(attr));
        break;
      case AttrKind::kString:
        text = std::get<std::string>(attr);
        break;
      case AttrKind::kInts:
        text = list_text(std::span<const int64_t>(std::get<std::vector<int64_t>>(attr)));
        break;
      case AttrKind::kFloats:
        text = list_text(std::span<const double>(std::get<std::vector<double>>(attr)));
        break;
      case AttrKind::kStrings: {
        text = "[";
        for (const std::string& item : std::get<std::vector<std::string>>(attr))
          text += str_cat(text.size() > 1 ? "," : "", item);
        text += "]";
        break;
      }
      case AttrKind::kGraph:
        break;
    }
    texts.emplace_back(name, std::move(text));
  }
  return texts;
}

const CustomOp& custom(const NodeView& node) {
  return *static_cast<const CustomOp*>(node.op().context);
}

Status custom_types(const NodeView& node, std::span<TensorType> outputs) {
  std::vector<TensorType> inputs;
  for (int i = 0; i < node.input_count(); ++i) inputs.push_back(node.has_input(i) ? node.input(i) : TensorType{});
  const LoopsMayStop none(false);  // it may make a session, whose constants are kept
  const Status status = custom(node).shape(inputs, attributes_of(node), outputs);
  if (!status.ok()) return status.with_prefix(str_cat(node.label(), ": shape function: "));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto wrong = [&](const auto&... parts) {
      return node.error("shape function: output ", i, " has ", parts...);
    };
    const auto dtype = static_cast<unsigned>(outputs[i].dtype);
    if (dtype >= static_cast<unsigned>(kDTypeCount)) return wrong("dtype ", dtype, ", which there is not");
    for (const Dim& d : outputs[i].shape) {
      if (d.size < Dim::kUnknown) return wrong("a size of ", d.size);
    }
  }
  return {};
}

Tensor tensor_of(const TensorView& view) {
  Tensor tensor;
  if (!view.present()) return tensor;
  tensor.type = *view.type;
  tensor.memory.host = view.bytes;
  tensor.memory.bytes = static_cast<size_t>(view.type->bytes());
  return tensor;
}

Status custom_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  std::vector<Tensor> inputs, outputs;
  for (const TensorView& view : in) inputs.push_back(tensor_of(view));
  for (const TensorView& view : out) outputs.push_back(tensor_of(view));
  const LoopsMayStop none(false);
  const Status status = custom(node).reference(inputs, attributes_of(node), outputs);
  return status.with_prefix(str_cat(node.label(), ": reference function: "));
}

}  // namespace

Result<std::shared_ptr<const CustomOps>> CustomOps::create(std::span<const CustomOp* const> ops) {
  auto result = std::make_shared<CustomOps>();
  std::vector<const OpDef*> defs;
  for (const CustomOp* op : ops) {
    if (!op || op->name.empty()) return invalid("a custom operator has no name");
    if (find_op(op->name)) return invalid("custom operator '", op->name, "' has the name of a built-in one");
    if (std::any_of(defs.begin(), defs.end(), [&](const OpDef* d) { return d->name == op->name; })) {
      return invalid("custom operator '", op->name, "' is given twice");
    }
    if (!op->shape || !op->reference)
      return invalid("custom operator '", op->name, "' lacks its shape or reference function");
    if (op->outputs < 1)
      return invalid("custom operator '", op->name, "' has ", op->outputs, " outputs, needs 1 or more");
    auto def = std::make_unique<OpDef>();
    def->name = op->name;
    static constexpr std::initializer_list<InputDef> kInputs = {{"inputs", kAny, 0, Arity::kVariadic}};
    def->inputs = kInputs;
    def->min_outputs = def->max_outputs = op->outputs;
    def->types = custom_types;
    def->reference = custom_reference;
    def->context = op;
    defs.push_back(def.get());
    result->defs_.push_back(std::move(def));
  }
  result->table_ = OpTable(defs);
  return std::shared_ptr<const CustomOps>(std::move(result));
}

}  // namespace pinnace
