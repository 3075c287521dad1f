// From a model to a graph: inputs, constants, operation after operation, outputs.
#include "nnapi/mapping.h"

#include <algorithm>
#include <set>

#include "base/sorted_table.h"
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
  if (info(operand.type).bytes == 0) return invalid("a ", info(operand.type).name, " has no value of bytes");
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

/// Models may refer to models, and each reference is mapped: what a few models can ask for has to have an end.
constexpr size_t kMostOperations = 1 << 14, kMostOperands = 1 << 17;

/// The first tensor among the inputs has a rank that the operation can have a meaning for: the one that is documented,
/// if that is one, or not less than the least. When the operation was added the rank may have been dynamic, and most
/// operations were taken with any.
Status check_rank(const Call& call, const OperationInfo& known) {
  for (size_t i = 0; i < call.inputs(); ++i) {
    if (!call.operand(i).tensor()) continue;
    if (!call.has(i)) return {};
    PINNACE_ASSIGN(const ValueId id, call.in(i));
    const int rank = call.rank(id);
    const bool one = known.least_rank == known.greatest_rank && known.greatest_rank > 0;
    if (rank >= known.least_rank && (!one || rank == known.greatest_rank)) return {};
    return call.error("input ", i, " has rank ", rank, ", must have ", known.least_rank, one ? "" : " or more");
  }
  return {};
}

}  // namespace

MapFn find_mapping(int32_t code) {
  static constexpr SortedTable kMappings({
#define MAP(op, function) TableLine<int32_t, MapFn>{static_cast<int32_t>(Op::op), map_##function},
#include "nnapi/mappings.inc"
#undef MAP
  });
  return kMappings.find(code);
}

bool all_operations(const Model& model, const Operation& operation,
                    const std::function<bool(const Operation& operation)>& holds) {
  if (!holds(operation)) return false;
  std::vector<const Model*> open;
  std::set<const Model*> seen;
  const auto refer = [&](const Model& from, const Operation& by) {
    for (uint32_t i : by.inputs) {
      if (const Model* other = from.operands[i].model.get()) open.push_back(other);
    }
  };
  refer(model, operation);
  while (!open.empty()) {
    const Model* at = open.back();
    open.pop_back();
    if (!seen.insert(at).second) continue;
    for (const Operation& inner : at->operations) {
      if (!holds(inner)) return false;
      refer(*at, inner);
    }
  }
  return true;
}

bool has_mapping(const Model& model, const Operation& operation) {
  return all_operations(model, operation, [](const Operation& o) { return find_mapping(o.code) != nullptr; });
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

void GraphBuilder::grow() {
  const size_t before = type_inference.types.size();
  type_inference.types.resize(graph.values.size());
  type_inference.data.resize(graph.values.size());
  type_inference.known.resize(graph.values.size());
  for (size_t i = before; i < graph.values.size(); ++i) {
    type_inference.types[i] = graph.values[i].type;
    type_inference.data[i] = graph.values[i].constant;
  }
}

ValueId GraphBuilder::add_constant(std::string name, TensorType type, ConstantPtr data) {
  const ValueId id = graph.add_constant(std::move(name), std::move(type), std::move(data));
  grow();
  return id;
}

ValueId GraphBuilder::add_input(std::string name, TensorType type) {
  const ValueId id = graph.add_input(std::move(name), std::move(type));
  grow();
  return id;
}

Result<ValueId> GraphBuilder::entropy() {
  if (entropy_ != kNoValue || !outermost().may_add_entropy) return entropy_;
  if (!outer) {
    entropy_ = add_input("entropy", {DType::kI32, {2}, nullptr});
    graph_inputs.push_back(kEntropyInput);
    return entropy_;
  }
  PINNACE_ASSIGN(const ValueId from, outer->entropy());
  entropy_ = capture(prefix + "entropy", from);
  if (iteration == kNoValue) return entropy_;
  // Each depth of loops multiplies its iterations by another odd number, so that equal sums are no equal seeds.
  const int32_t factor[2] = {0, static_cast<int32_t>(0x9e3779b9u * static_cast<uint32_t>(2 * nesting + 1))};
  PINNACE_ASSIGN(ConstantPtr bytes, Constant::copy_of(factor, sizeof factor));
  const ValueId by = add_constant(prefix + "entropy/factor", {DType::kI32, {2}, nullptr}, std::move(bytes));
  const std::string name = prefix + "entropy/iteration";
  PINNACE_ASSIGN(const auto number, emit("cast", name, {iteration}, {{"to", std::string("i32")}}, 1, nullptr));
  PINNACE_ASSIGN(const auto scaled, emit("mul", name, {number[0], by}, {}, 1, nullptr));
  PINNACE_ASSIGN(const auto mixed, emit("bitwise_xor", name, {entropy_, scaled[0]}, {}, 1, nullptr));
  entropy_ = mixed[0];
  return entropy_;
}

Result<std::vector<ValueId>> GraphBuilder::emit(std::string_view op, std::string name, std::vector<ValueId> inputs,
                                                Attrs attrs, int outputs, const QuantizationPtr& declared) {
  const OpDef* def = find_op(op);
  if (!def) return unsupported("operator ", op, " is not in this build");
  std::vector<ValueId> made;
  for (int i = 0; i < outputs; ++i) {
    made.push_back(graph.add_value(name, {DType::kF32, {}, i == 0 ? declared : nullptr}));
  }
  Node* node = graph.add_node(std::string(op), def->version, std::move(name), std::move(inputs), made);
  for (auto& [key, value] : attrs) node->set_attr(key, std::move(value));
  PINNACE_TRY(infer_into(graph, *node, type_inference));
  for (ValueId id : made) graph.value(id).type = type(id);
  return made;
}

Status GraphBuilder::add_inputs(std::span<const InputSpec> inputs) {
  values.assign(model->operands.size(), kNoValue);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint32_t index = model->inputs[i];
    const Operand& operand = model->operands[index];
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

Status GraphBuilder::add_constants() {
  PINNACE_TRY(count_reference());
  for (size_t i = 0; i < model->operands.size(); ++i) {
    const Operand& operand = model->operands[i];
    if (operand.lifetime != Lifetime::kConstant) continue;
    PINNACE_ASSIGN(ConstantPtr data, constant_of(operand, operand.data));
    values[i] = add_constant(str_cat(prefix, "constant_", i), tensor_type(operand, operand.dims), std::move(data));
  }
  return {};
}

ValueId GraphBuilder::capture(std::string name, ValueId from) {
  const TensorType type = outer->type(from);
  if (const ConstantPtr data = outer->data(from)) return add_constant(std::move(name), type, data);
  const ValueId id = add_input(std::move(name), type);
  captured[id] = from;
  return id;
}

std::vector<ValueId> GraphBuilder::captures() const {
  std::vector<ValueId> from;
  for (ValueId id : graph.inputs) {
    if (const auto found = captured.find(id); found != captured.end()) from.push_back(found->second);
  }
  return from;
}

Result<std::vector<ValueId>> GraphBuilder::inlined(const Model& other, const std::string& name,
                                                   std::span<const ValueId> inputs) {
  std::vector<ValueId> of_other(other.operands.size(), kNoValue);
  for (size_t i = 0; i < inputs.size(); ++i) of_other[other.inputs[i]] = inputs[i];
  const Model* const own = std::exchange(model, &other);
  std::string of_own = std::exchange(prefix, name + "/");
  std::swap(values, of_other);
  ++nesting;
  Status status = add_constants();
  if (status.ok()) status = run_operations();
  --nesting;
  std::swap(values, of_other);
  prefix = std::move(of_own);
  model = own;
  PINNACE_TRY(status);
  std::vector<ValueId> made;
  for (uint32_t i : other.outputs) made.push_back(of_other[i]);
  return made;
}

Status GraphBuilder::count_reference() {
  if (nesting == 0) return {};
  GraphBuilder& first = outermost();
  first.referenced_operations_ += model->operations.size();
  first.referenced_operands_ += model->operands.size();
  if (first.referenced_operations_ > kMostOperations) {
    return unsupported("references to models stand for more than ", kMostOperations, " operations");
  }
  if (first.referenced_operands_ > kMostOperands) {
    return unsupported("references to models stand for more than ", kMostOperands, " operands");
  }
  return {};
}

Status GraphBuilder::run_operations() {
  const Model& model = *this->model;  // a referenced one takes its place while it is inlined
  for (size_t k = 0; k < model.operations.size(); ++k) {
    const Operation& operation = model.operations[k];
    PINNACE_TRY(check_stopped("the mapping of an NNAPI model"));
    const MapFn function = find_mapping(operation.code);
    const OperationInfo* known = operation_info(operation.code);
    if (!function) return unsupported("operation ", known ? known->name : str_cat(operation.code), " has no mapping");
    Call call(*this, operation, str_cat(prefix, known->name, "_", k));
    PINNACE_TRY(check_rank(call, *known));
    PINNACE_TRY(function(call));
  }
  return {};
}

Status GraphBuilder::run(std::span<const InputSpec> inputs) {
  PINNACE_TRY(add_inputs(inputs));
  PINNACE_TRY(add_constants());
  PINNACE_TRY(run_operations());
  for (size_t i = 0; i < model->outputs.size(); ++i) {
    graph.add_output(str_cat("output_", i), values[model->outputs[i]]);
  }
  return {};
}

Status GraphBuilder::need(ValueId id) {
  const Uses uses(graph);
  std::vector<ValueId> open = {id};
  std::vector<bool> seen(graph.values.size(), false);
  bool found = false;
  while (!open.empty()) {
    const ValueId at = open.back();
    open.pop_back();
    if (at == kNoValue || seen[static_cast<size_t>(at)]) continue;
    seen[static_cast<size_t>(at)] = true;
    found |= need_input(at);
    const int32_t maker = uses.producer[static_cast<size_t>(at)];
    if (maker < 0) continue;
    const std::vector<ValueId>& from = graph.nodes[static_cast<size_t>(maker)]->inputs;
    open.insert(open.end(), from.begin(), from.end());
  }
  return unsupported("value '", graph.value(id).name, "' is an attribute with us",
                     found ? "" : ", and is known only while the model runs");
}

bool GraphBuilder::need_input(ValueId id) {
  if (outer) {
    const auto from = captured.find(id);
    if (from == captured.end()) return false;
    const size_t before = outermost().needed.size();
    (void)outer->need(from->second);  // the caller fails
    return outermost().needed.size() > before;
  }
  const auto found = std::find(graph.inputs.begin(), graph.inputs.end(), id);
  if (found == graph.inputs.end()) return false;
  const uint32_t input = graph_inputs[static_cast<size_t>(found - graph.inputs.begin())];
  if (input == kEntropyInput || std::find(needed.begin(), needed.end(), input) != needed.end()) return false;
  needed.push_back(input);
  return true;
}

GraphBuilder& GraphBuilder::outermost() {
  GraphBuilder* at = this;
  while (at->outer) at = at->outer;
  return *at;
}

Result<ModelGraph> to_graph(const Model& model, std::span<const InputSpec> inputs, bool entropy) {
  GraphBuilder builder(model, "");
  builder.may_add_entropy = entropy;
  Status status = builder.run(inputs);
  if (!status.ok() && builder.needed.empty()) return status;
  return ModelGraph{std::move(builder.graph), std::move(builder.graph_inputs), std::move(builder.needed)};
}

}  // namespace pinnace::nnapi
