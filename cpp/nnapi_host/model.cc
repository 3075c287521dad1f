// Model: calls that build one. A call that fails changes nothing.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/exception_boundary.h"
#include "nnapi_host/objects.h"

using namespace pinnace::nnapi_host;
using pinnace::nnapi::Lifetime;
using pinnace::nnapi::Operand;
using pinnace::nnapi::OperandCode;
using pinnace::nnapi::Operation;

namespace {

/// An operation of a vendor from before NNAPI had extensions. A model may hold it; nothing runs it.
constexpr int32_t kOemOperation = 10000;

bool oem(const Operand& operand) {
  return operand.type == OperandCode::kOemScalar || operand.type == OperandCode::kTensorOemByte;
}

/// Checks that all values of operands have in common.
int check_value(const ANeuralNetworksModel* model, int32_t index) {
  if (model->finished) return ANEURALNETWORKS_BAD_STATE;
  if (index < 0 || static_cast<size_t>(index) >= model->model->operands.size()) return ANEURALNETWORKS_BAD_DATA;
  return ANEURALNETWORKS_NO_ERROR;
}

int check_constant(const Operand& operand, size_t length) {
  if (operand.type == OperandCode::kModel) return ANEURALNETWORKS_BAD_DATA;
  if (oem(operand)) return ANEURALNETWORKS_NO_ERROR;
  return operand.shape_known() && operand.bytes() == length ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_BAD_DATA;
}

/// A list of operands that are to be inputs or outputs.
bool distinct_variables(const pinnace::nnapi::Model& model, std::span<const uint32_t> list, std::vector<bool>& taken) {
  for (uint32_t i : list) {
    if (i >= model.operands.size() || taken[i]) return false;
    const Lifetime from = model.operands[i].lifetime;
    if (from == Lifetime::kConstant || from == Lifetime::kOmitted || from == Lifetime::kModel) return false;
    taken[i] = true;
  }
  return true;
}

int finish(ANeuralNetworksModel& model) {
  pinnace::nnapi::Model& m = *model.model;
  if (m.inputs.empty() || m.outputs.empty()) return ANEURALNETWORKS_BAD_DATA;
  for (const Operand& operand : m.operands) {
    if (operand.type == OperandCode::kTensorQuant8SymmPerChannel && operand.channel_scales.empty()) {
      return ANEURALNETWORKS_BAD_DATA;
    }
    if (operand.type == OperandCode::kModel && !operand.model) return ANEURALNETWORKS_BAD_DATA;
  }
  // Values, referenced models and scales may have been replaced since the operations were added.
  const bool valid = std::all_of(m.operations.begin(), m.operations.end(), [&](const Operation& operation) {
    return operation.code == kOemOperation || pinnace::nnapi::validate_operation(m, operation, feature_level()).ok();
  });
  if (!valid) return ANEURALNETWORKS_BAD_DATA;
  return pinnace::nnapi::finish_model(m, &model.order).ok() ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_BAD_DATA;
}

}  // namespace

int plain::Model_create(ANeuralNetworksModel** model) {
  if (!model) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *model = new ANeuralNetworksModel;
  return ANEURALNETWORKS_NO_ERROR;
}

void plain::Model_free(ANeuralNetworksModel* model) {
  delete model;
}

int plain::Model_addOperand(ANeuralNetworksModel* model, const ANeuralNetworksOperandType* type) {
  if (!model || !type) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (model->finished) return ANEURALNETWORKS_BAD_STATE;
  const auto status = pinnace::nnapi::validate_operand(type->type, type->dimensionCount, type->dimensions, type->scale,
                                                       type->zeroPoint);
  if (!status.ok()) return ANEURALNETWORKS_BAD_DATA;
  if (pinnace::nnapi::operand_code_info(type->type)->since > feature_level()) return ANEURALNETWORKS_BAD_DATA;
  Operand operand;
  operand.type = static_cast<OperandCode>(type->type);
  operand.dims.assign(type->dimensions, type->dimensions + type->dimensionCount);
  operand.scale = type->scale;
  operand.zero_point = type->zeroPoint;
  model->model->operands.push_back(std::move(operand));
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Model_setOperandValue(ANeuralNetworksModel* model, int32_t index, const void* buffer, size_t length) {
  if (!model || (!buffer && length > 0)) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (const int code = check_value(model, index)) return code;
  Operand& operand = model->model->operands[static_cast<size_t>(index)];
  if (!buffer) {
    if (operand.type == OperandCode::kModel) return ANEURALNETWORKS_BAD_DATA;
    operand.lifetime = Lifetime::kOmitted;
    operand.data = {};
    operand.owner = nullptr;
    return ANEURALNETWORKS_NO_ERROR;
  }
  if (const int code = check_constant(operand, length)) return code;
  const auto* bytes = static_cast<const std::byte*>(buffer);
  std::shared_ptr<std::vector<std::byte>> copy;
  if (length <= ANEURALNETWORKS_MAX_SIZE_OF_IMMEDIATELY_COPIED_VALUES) {
    copy = std::make_shared<std::vector<std::byte>>(bytes, bytes + length);
    bytes = copy->data();
  }
  operand.owner = std::move(copy);
  operand.data = {bytes, length};
  operand.lifetime = Lifetime::kConstant;
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Model_setOperandValueFromMemory(ANeuralNetworksModel* model, int32_t index,
                                           const ANeuralNetworksMemory* memory, size_t offset, size_t length) {
  if (!model || !memory) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (const int code = check_value(model, index)) return code;
  Operand& operand = model->model->operands[static_cast<size_t>(index)];
  if (!memory->mapping || !memory->mapping->readable()) return ANEURALNETWORKS_BAD_DATA;
  if (offset > memory->mapping->size() || length > memory->mapping->size() - offset) return ANEURALNETWORKS_BAD_DATA;
  if (const int code = check_constant(operand, length)) return code;
  operand.data = {memory->mapping->data() + offset, length};
  operand.owner = memory->mapping;
  operand.lifetime = Lifetime::kConstant;
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Model_setOperandValueFromModel(ANeuralNetworksModel* model, int32_t index,
                                          const ANeuralNetworksModel* value) {
  if (!model || !value) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (!value->valid) return ANEURALNETWORKS_BAD_STATE;
  if (const int code = check_value(model, index)) return code;
  Operand& operand = model->model->operands[static_cast<size_t>(index)];
  if (operand.type != OperandCode::kModel) return ANEURALNETWORKS_BAD_DATA;
  operand.model = value->model;
  operand.lifetime = Lifetime::kModel;
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Model_setOperandSymmPerChannelQuantParams(ANeuralNetworksModel* model, int32_t index,
                                                     const ANeuralNetworksSymmPerChannelQuantParams* channelQuant) {
  if (!model || !channelQuant) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (const int code = check_value(model, index)) return code;
  Operand& operand = model->model->operands[static_cast<size_t>(index)];
  const auto& q = *channelQuant;
  if (operand.type != OperandCode::kTensorQuant8SymmPerChannel || !q.scales) return ANEURALNETWORKS_BAD_DATA;
  if (q.channelDim >= operand.dims.size() || q.scaleCount != operand.dims[q.channelDim])
    return ANEURALNETWORKS_BAD_DATA;
  if (q.scaleCount == 0) return ANEURALNETWORKS_BAD_DATA;
  const std::span scales(q.scales, q.scaleCount);
  for (float scale : scales) {
    if (!(scale > 0) || std::isinf(scale)) return ANEURALNETWORKS_BAD_DATA;
  }
  operand.channel_scales.assign(scales.begin(), scales.end());
  operand.channel_dim = q.channelDim;
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Model_addOperation(ANeuralNetworksModel* model, ANeuralNetworksOperationType type, uint32_t inputCount,
                              const uint32_t* inputs, uint32_t outputCount, const uint32_t* outputs) {
  if (!model || !inputs || !outputs) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (model->finished) return ANEURALNETWORKS_BAD_STATE;
  Operation operation{type, {inputs, inputs + inputCount}, {outputs, outputs + outputCount}};
  if (type == kOemOperation) {
    const auto outside = [&](uint32_t i) { return i >= model->model->operands.size(); };
    if (std::any_of(operation.inputs.begin(), operation.inputs.end(), outside) ||
        std::any_of(operation.outputs.begin(), operation.outputs.end(), outside)) {
      return ANEURALNETWORKS_BAD_DATA;
    }
  } else if (!pinnace::nnapi::validate_operation(*model->model, operation, feature_level()).ok()) {
    return ANEURALNETWORKS_BAD_DATA;
  }
  model->model->operations.push_back(std::move(operation));
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Model_identifyInputsAndOutputs(ANeuralNetworksModel* model, uint32_t inputCount, const uint32_t* inputs,
                                          uint32_t outputCount, const uint32_t* outputs) {
  if (!model || !inputs || inputCount == 0 || !outputs || outputCount == 0) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (model->finished) return ANEURALNETWORKS_BAD_STATE;
  pinnace::nnapi::Model& m = *model->model;
  std::vector<bool> taken(m.operands.size(), false);
  if (!distinct_variables(m, {inputs, inputCount}, taken) || !distinct_variables(m, {outputs, outputCount}, taken)) {
    return ANEURALNETWORKS_BAD_DATA;
  }
  std::vector<uint32_t> new_inputs(inputs, inputs + inputCount), new_outputs(outputs, outputs + outputCount);
  // Of a call before. What has got a value since then keeps it.
  for (Operand& operand : m.operands) {
    const bool named = operand.lifetime == Lifetime::kInput || operand.lifetime == Lifetime::kOutput;
    if (named) operand.lifetime = Lifetime::kTemporary;
  }
  m.inputs = std::move(new_inputs);
  m.outputs = std::move(new_outputs);
  for (uint32_t i : m.inputs) m.operands[i].lifetime = Lifetime::kInput;
  for (uint32_t i : m.outputs) m.operands[i].lifetime = Lifetime::kOutput;
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Model_relaxComputationFloat32toFloat16(ANeuralNetworksModel* model, bool allow) {
  if (!model) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (model->finished) return ANEURALNETWORKS_BAD_STATE;
  model->model->relaxed = allow;
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Model_finish(ANeuralNetworksModel* model) {
  if (!model) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (model->finished) return ANEURALNETWORKS_BAD_STATE;
  const int code = pinnace::exception_boundary([&] { return finish(*model); }, ANEURALNETWORKS_OUT_OF_MEMORY);
  model->finished = code != ANEURALNETWORKS_OUT_OF_MEMORY;  // later there may be more
  model->valid = code == ANEURALNETWORKS_NO_ERROR;
  return code;
}

int plain::Model_getSupportedOperationsForDevices(const ANeuralNetworksModel* model,
                                                  const ANeuralNetworksDevice* const* devices, uint32_t numDevices,
                                                  bool* supportedOps) {
  if (!model || !supportedOps) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (const int code = check_devices(devices, numDevices)) return code;
  if (!model->valid) return ANEURALNETWORKS_BAD_STATE;
  for (size_t k = 0; k < model->order.size(); ++k) {
    const auto& operation = model->model->operations[k];
    supportedOps[model->order[k]] = std::any_of(devices, devices + numDevices, [&](const auto* device) {
      return device_takes(*device, *model->model, operation);
    });
  }
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Model_getExtensionOperandType(ANeuralNetworksModel* model, const char* extensionName, uint16_t,
                                         int32_t* type) {
  return model && extensionName && type ? ANEURALNETWORKS_BAD_DATA : ANEURALNETWORKS_UNEXPECTED_NULL;
}

int plain::Model_getExtensionOperationType(ANeuralNetworksModel* model, const char* extensionName, uint16_t,
                                           ANeuralNetworksOperationType* type) {
  return model && extensionName && type ? ANEURALNETWORKS_BAD_DATA : ANEURALNETWORKS_UNEXPECTED_NULL;
}

int plain::Model_setOperandExtensionData(ANeuralNetworksModel* model, int32_t, const void* data, size_t) {
  return model && data ? ANEURALNETWORKS_BAD_DATA : ANEURALNETWORKS_UNEXPECTED_NULL;
}
