// From a model to a graph: inputs, constants, operation after operation, outputs.
#include "nnapi/lowering.h"

#include <algorithm>

#include "base/status.h"

namespace pinnace::nnapi {
namespace {

using enum OperandCode;

DType dtype_of(OperandCode code) {
  switch (code) {
    case kTensorFloat16:
    case kFloat16:
      return DType::kF16;
    case kTensorInt32:
    case kInt32:
      return DType::kI32;
    case kUint32:
      return DType::kU32;
    case kTensorQuant8Asymm:
    case kTensorOemByte:
    case kOemScalar:
      return DType::kU8;
    case kTensorQuant8AsymmSigned:
    case kTensorQuant8Symm:
    case kTensorQuant8SymmPerChannel:
      return DType::kI8;
    case kTensorQuant16Asymm:
      return DType::kU16;
    case kTensorQuant16Symm:
      return DType::kI16;
    case kTensorBool8:
    case kBool:
      return DType::kBool;
    default:
      return DType::kF32;
  }
}

/// The bytes of a constant: where they lie if they are aligned as their elements need, else copied. True is 1.
Result<ConstantPtr> constant_of(const Operand& operand, std::span<const std::byte> bytes) {
  const bool boolean = dtype_of(operand.type) == DType::kBool;
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  if (!boolean && operand.lifetime == Lifetime::kConstant && address % info(operand.type).bytes == 0) {
    return std::make_shared<const Constant>(operand.owner, bytes.data(), bytes.size());
  }
  PINNACE_ASSIGN(Buffer copy, Buffer::allocate(bytes.size(), "a constant"));
  std::copy(bytes.begin(), bytes.end(), copy.data());
  if (boolean) {
    for (size_t i = 0; i < copy.size(); ++i) copy.data()[i] = std::byte(copy.data()[i] != std::byte{0});
  }
  return Constant::of(std::move(copy));
}

constexpr std::pair<Op, LowerFn> kLowerings[] = {
#define LOWER(op, function) {Op::op, lower_##function},
#include "nnapi/lowerings.inc"
#undef LOWER
};

}  // namespace

LowerFn find_lowering(int32_t code) {
  for (const auto& [op, function] : kLowerings) {
    if (static_cast<int32_t>(op) == code) return function;
  }
  return nullptr;
}

bool can_lower(int32_t code) {
  return find_lowering(code) != nullptr;
}

QuantizationPtr per_tensor(float scale, int32_t zero_point) {
  return std::make_shared<const Quantization>(Quantization{{scale}, {zero_point}});
}

QuantizationPtr quantization_of(const Operand& operand) {
  if (operand.type == kTensorQuant8SymmPerChannel) {
    Quantization q{operand.channel_scales, std::vector<int32_t>(operand.channel_scales.size(), 0),
                   static_cast<int32_t>(operand.channel_dim)};
    return std::make_shared<const Quantization>(std::move(q));
  }
  return info(operand.type).quantized ? per_tensor(operand.scale, operand.zero_point) : nullptr;
}

TensorType tensor_type(const Operand& operand, std::span<const uint32_t> dims) {
  TensorType type{dtype_of(operand.type), {}, quantization_of(operand)};
  for (uint32_t d : dims) type.shape.push_back(Dim(static_cast<int64_t>(d)));
  return type;
}

// ----------------------------------------------------------------------------------------------------- the graph

void Lowering::grow() {
  const size_t before = inference.types.size();
  inference.types.resize(graph.values.size());
  inference.data.resize(graph.values.size());
  inference.known.resize(graph.values.size());
  for (size_t i = before; i < graph.values.size(); ++i) {
    inference.types[i] = graph.values[i].type;
    inference.data[i] = graph.values[i].constant;
  }
}

ValueId Lowering::add_constant(std::string name, TensorType type, ConstantPtr data) {
  const ValueId id = graph.add_constant(std::move(name), std::move(type), std::move(data));
  grow();
  return id;
}

ValueId Lowering::add_input(std::string name, TensorType type) {
  const ValueId id = graph.add_input(std::move(name), std::move(type));
  grow();
  return id;
}

Result<std::vector<ValueId>> Lowering::emit(std::string_view op, std::string name, std::vector<ValueId> inputs,
                                            Attrs attrs, int outputs, const QuantizationPtr& declared) {
  const OpDef* def = find_op(op);
  if (!def) return unsupported("operator ", op, " is not in this build");
  std::vector<ValueId> made;
  for (int i = 0; i < outputs; ++i) {
    made.push_back(graph.add_value(name, {DType::kF32, {}, i == 0 ? declared : nullptr}));
  }
  Node* node = graph.add_node(std::string(op), def->version, std::move(name), std::move(inputs), made);
  for (auto& [key, value] : attrs) node->set_attr(key, std::move(value));
  PINNACE_TRY(infer_into(graph, *node, inference));
  for (ValueId id : made) graph.value(id).type = type(id);
  return made;
}

Status Lowering::add_inputs(std::span<const InputSpec> inputs) {
  values.assign(model.operands.size(), kNoValue);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint32_t index = model.inputs[i];
    const Operand& operand = model.operands[index];
    if (inputs[i].omitted) continue;
    TensorType type = tensor_type(operand, inputs[i].dims);
    const std::string name = str_cat(prefix, "input_", i);
    if (inputs[i].constant) {
      PINNACE_ASSIGN(ConstantPtr data, constant_of(operand, inputs[i].data));
      values[index] = add_constant(name, std::move(type), std::move(data));
      continue;
    }
    graph_inputs.push_back(static_cast<uint32_t>(i));
    const bool boolean = type.dtype == DType::kBool;
    if (boolean) type.dtype = DType::kU8;
    values[index] = add_input(name, std::move(type));
    if (boolean) {
      PINNACE_ASSIGN(auto truth, emit("cast", name, {values[index]}, {{"to", std::string("bool")}}, 1, nullptr));
      values[index] = truth[0];
    }
  }
  return {};
}

Status Lowering::add_constants() {
  for (size_t i = 0; i < model.operands.size(); ++i) {
    const Operand& operand = model.operands[i];
    if (operand.lifetime != Lifetime::kConstant) continue;
    PINNACE_ASSIGN(ConstantPtr data, constant_of(operand, operand.data));
    values[i] = add_constant(str_cat(prefix, "constant_", i), tensor_type(operand, operand.dims), std::move(data));
  }
  return {};
}

Status Lowering::run_operations() {
  for (size_t k = 0; k < model.operations.size(); ++k) {
    const Operation& operation = model.operations[k];
    const LowerFn function = find_lowering(operation.code);
    const OperationInfo* known = operation_info(operation.code);
    if (!function) return unsupported("operation ", known ? known->name : str_cat(operation.code), " has no lowering");
    Call call(*this, operation, str_cat(prefix, known->name, "_", k));
    PINNACE_TRY(function(call));
  }
  return {};
}

Status Lowering::run(std::span<const InputSpec> inputs) {
  PINNACE_TRY(add_inputs(inputs));
  PINNACE_TRY(add_constants());
  PINNACE_TRY(run_operations());
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    graph.add_output(str_cat("output_", i), values[model.outputs[i]]);
  }
  return {};
}

Status Lowering::need(ValueId id) {
  const Uses uses(graph);
  std::vector<ValueId> open = {id};
  std::vector<bool> seen(graph.values.size(), false);
  const size_t before = needed.size();
  while (!open.empty()) {
    const ValueId at = open.back();
    open.pop_back();
    if (at == kNoValue || seen[static_cast<size_t>(at)]) continue;
    seen[static_cast<size_t>(at)] = true;
    const auto found = std::find(graph.inputs.begin(), graph.inputs.end(), at);
    if (found != graph.inputs.end()) {
      const uint32_t input = graph_inputs[static_cast<size_t>(found - graph.inputs.begin())];
      if (std::find(needed.begin(), needed.end(), input) == needed.end()) needed.push_back(input);
    }
    const int32_t maker = uses.producer[static_cast<size_t>(at)];
    if (maker < 0) continue;
    const std::vector<ValueId>& from = graph.nodes[static_cast<size_t>(maker)]->inputs;
    open.insert(open.end(), from.begin(), from.end());
  }
  return unsupported("value '", graph.value(id).name, "' is an attribute with us",
                     needed.size() > before ? "" : ", and is known only while the model runs");
}

Result<Lowered> lower(const Model& model, std::span<const InputSpec> inputs) {
  Lowering lowering(model, "");
  const Status status = lowering.run(inputs);
  if (!status.ok() && lowering.needed.empty()) return status;
  return Lowered{std::move(lowering.graph), std::move(lowering.graph_inputs), std::move(lowering.needed)};
}

}  // namespace pinnace::nnapi
