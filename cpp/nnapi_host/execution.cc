// Execution: setters, and what can be asked afterwards.
#include "nnapi_host/execution.h"

#include <algorithm>

using namespace pinnace::nnapi_host;
using pinnace::nnapi::Operand;

namespace {

/// Checks that all setters of inputs and outputs share; `binding` is what is to be filled. An input that has a value
/// must have a shape by now, an output gets it from the computation.
int begin_set(ANeuralNetworksExecution* execution, bool input, int32_t index, const ANeuralNetworksOperandType* type,
              bool omitted, Binding** binding, const Operand** operand, Binding& made) {
  if (execution->state != ExecutionState::kPreparation) return ANEURALNETWORKS_BAD_STATE;
  std::vector<Binding>& bindings = input ? execution->inputs : execution->outputs;
  if (index < 0 || static_cast<size_t>(index) >= bindings.size()) return ANEURALNETWORKS_BAD_DATA;
  *binding = &bindings[static_cast<size_t>(index)];
  const pinnace::nnapi::Model& model = execution->engine->model();
  *operand = &model.operands[(input ? model.inputs : model.outputs)[static_cast<size_t>(index)]];
  if (const int code = merge_type(**operand, type, !input || omitted, made.dims, made.dynamic_rank)) return code;
  if ((*binding)->set) return ANEURALNETWORKS_BAD_STATE;
  made.set = true;
  return ANEURALNETWORKS_NO_ERROR;
}

/// `length` is that of the type, or, with padding, at least that; dynamic types take any that 32 bits count.
bool length_fits(const ANeuralNetworksExecution* execution, const Operand& operand, const Binding& binding,
                 size_t length) {
  if (length > UINT32_MAX) return false;
  const uint64_t needed = bytes_of(operand, binding.dims, binding.dynamic_rank).value_or(UINT64_MAX);
  return needed == 0 || (execution->padding ? length >= needed : length == needed);
}

int set(ANeuralNetworksExecution* execution, bool input, int32_t index, const ANeuralNetworksOperandType* type,
        const void* buffer, size_t length) {
  if (!execution || (!buffer && length > 0)) return ANEURALNETWORKS_UNEXPECTED_NULL;
  Binding *binding = nullptr, made;
  const Operand* operand = nullptr;
  std::lock_guard lock(execution->mutex);
  if (const int code = begin_set(execution, input, index, type, !buffer, &binding, &operand, made)) return code;
  if (buffer && (length == 0 || !length_fits(execution, *operand, made, length))) return ANEURALNETWORKS_BAD_DATA;
  made.data = const_cast<std::byte*>(static_cast<const std::byte*>(buffer));
  made.length = length;
  *binding = std::move(made);
  return ANEURALNETWORKS_NO_ERROR;
}

int set_from_memory(ANeuralNetworksExecution* execution, bool input, int32_t index,
                    const ANeuralNetworksOperandType* type, const ANeuralNetworksMemory* memory, size_t offset,
                    size_t length) {
  if (!execution || !memory) return ANEURALNETWORKS_UNEXPECTED_NULL;
  Binding *binding = nullptr, made;
  const Operand* operand = nullptr;
  std::lock_guard lock(execution->mutex);
  if (const int code = begin_set(execution, input, index, type, false, &binding, &operand, made)) return code;
  if (const auto& device = memory->device) {
    const Role role{execution->engine, input, static_cast<uint32_t>(index)};
    if (offset != 0 || length != 0) return ANEURALNETWORKS_BAD_DATA;
    if (std::find(device->roles.begin(), device->roles.end(), role) == device->roles.end()) {
      return ANEURALNETWORKS_BAD_DATA;
    }
    const std::vector<uint32_t>& dims = device->operand.dims;
    const auto fits = [](uint32_t wanted, uint32_t is) { return wanted == 0 || wanted == is; };
    if (!made.dynamic_rank && !std::equal(made.dims.begin(), made.dims.end(), dims.begin(), dims.end(), fits)) {
      return ANEURALNETWORKS_BAD_DATA;
    }
    made.dims = dims;
    made.dynamic_rank = false;
    made.data = device->bytes.data();
    made.length = device->bytes.size();
    made.device = device;
  } else {
    const Mapping& mapping = *memory->mapping;
    if (input ? !mapping.readable() : !mapping.writable()) return ANEURALNETWORKS_BAD_DATA;
    if (offset > mapping.size() || length > mapping.size() - offset) return ANEURALNETWORKS_BAD_DATA;
    if (length == 0 || !length_fits(execution, *operand, made, length)) return ANEURALNETWORKS_BAD_DATA;
    made.data = mapping.data() + offset;
    made.length = length;
    made.mapping = memory->mapping;
  }
  *binding = std::move(made);
  return ANEURALNETWORKS_NO_ERROR;
}

/// Calls `change` while the execution is being prepared.
template <class Change>
int prepare(ANeuralNetworksExecution* execution, Change change) {
  if (!execution) return ANEURALNETWORKS_UNEXPECTED_NULL;
  std::lock_guard lock(execution->mutex);
  if (execution->state != ExecutionState::kPreparation) return ANEURALNETWORKS_BAD_STATE;
  return change(*execution);
}

/// For queries of output shapes: which output, or why there is no answer.
int find_output(const ANeuralNetworksExecution* execution, int32_t index) {
  if (execution->state != ExecutionState::kCompleted) return ANEURALNETWORKS_BAD_STATE;
  if (execution->result != ANEURALNETWORKS_NO_ERROR && execution->result != ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE) {
    return ANEURALNETWORKS_BAD_STATE;
  }
  return index < 0 || static_cast<size_t>(index) >= execution->output_dims.size() ? ANEURALNETWORKS_BAD_DATA
                                                                                  : ANEURALNETWORKS_NO_ERROR;
}

}  // namespace

int plain::Execution_create(ANeuralNetworksCompilation* compilation, ANeuralNetworksExecution** execution) {
  if (!execution) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *execution = nullptr;
  if (!compilation) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (!compilation->engine) return ANEURALNETWORKS_BAD_STATE;
  auto made = std::make_unique<ANeuralNetworksExecution>();
  made->engine = compilation->engine;
  made->explicit_devices = static_cast<uint32_t>(compilation->devices.size());
  made->inputs.resize(made->engine->model().inputs.size());
  made->outputs.resize(made->engine->model().outputs.size());
  *execution = made.release();
  return ANEURALNETWORKS_NO_ERROR;
}

void plain::Execution_free(ANeuralNetworksExecution* execution) {
  delete execution;
}

int plain::Execution_setInput(ANeuralNetworksExecution* execution, int32_t index,
                              const ANeuralNetworksOperandType* type, const void* buffer, size_t length) {
  return set(execution, true, index, type, buffer, length);
}
int plain::Execution_setOutput(ANeuralNetworksExecution* execution, int32_t index,
                               const ANeuralNetworksOperandType* type, void* buffer, size_t length) {
  return set(execution, false, index, type, buffer, length);
}
int plain::Execution_setInputFromMemory(ANeuralNetworksExecution* execution, int32_t index,
                                        const ANeuralNetworksOperandType* type, const ANeuralNetworksMemory* memory,
                                        size_t offset, size_t length) {
  return set_from_memory(execution, true, index, type, memory, offset, length);
}
int plain::Execution_setOutputFromMemory(ANeuralNetworksExecution* execution, int32_t index,
                                         const ANeuralNetworksOperandType* type, const ANeuralNetworksMemory* memory,
                                         size_t offset, size_t length) {
  return set_from_memory(execution, false, index, type, memory, offset, length);
}

int plain::Execution_setReusable(ANeuralNetworksExecution* execution, bool reusable) {
  return prepare(execution, [&](ANeuralNetworksExecution& e) {
    e.reusable = reusable;
    return ANEURALNETWORKS_NO_ERROR;
  });
}

int plain::Execution_enableInputAndOutputPadding(ANeuralNetworksExecution* execution, bool enable) {
  return prepare(execution, [&](ANeuralNetworksExecution& e) -> int {
    const auto is_set = [](const Binding& b) { return b.set; };
    if (std::any_of(e.inputs.begin(), e.inputs.end(), is_set) ||
        std::any_of(e.outputs.begin(), e.outputs.end(), is_set)) {
      return ANEURALNETWORKS_BAD_STATE;
    }
    e.padding = enable;
    return ANEURALNETWORKS_NO_ERROR;
  });
}

int plain::Execution_setMeasureTiming(ANeuralNetworksExecution* execution, bool measure) {
  return prepare(execution, [&](ANeuralNetworksExecution& e) -> int {
    if (e.explicit_devices != 1) return ANEURALNETWORKS_BAD_DATA;
    e.measure = measure;
    return ANEURALNETWORKS_NO_ERROR;
  });
}

int plain::Execution_setTimeout(ANeuralNetworksExecution* execution, uint64_t duration) {
  return prepare(execution, [&](ANeuralNetworksExecution& e) -> int {
    if (e.explicit_devices != 1) return ANEURALNETWORKS_BAD_DATA;
    e.timeout_ns = duration;
    return ANEURALNETWORKS_NO_ERROR;
  });
}

int plain::Execution_setLoopTimeout(ANeuralNetworksExecution* execution, uint64_t duration) {
  return prepare(execution, [&](ANeuralNetworksExecution& e) {
    e.loop_timeout_ns = std::min(duration, kMaximumLoopTimeout);
    return ANEURALNETWORKS_NO_ERROR;
  });
}

uint64_t plain::getDefaultLoopTimeout(void) {
  return kDefaultLoopTimeout;
}
uint64_t plain::getMaximumLoopTimeout(void) {
  return kMaximumLoopTimeout;
}

int plain::Execution_addExtensionAttribute(ANeuralNetworksExecution* execution, const char* extensionName, uint16_t,
                                           const void* data, size_t) {
  return execution && extensionName && data ? ANEURALNETWORKS_BAD_DATA : ANEURALNETWORKS_UNEXPECTED_NULL;
}

int plain::Execution_getOutputOperandRank(ANeuralNetworksExecution* execution, int32_t index, uint32_t* rank) {
  if (!execution || !rank) return ANEURALNETWORKS_UNEXPECTED_NULL;
  std::lock_guard lock(execution->mutex);
  if (const int code = find_output(execution, index)) return code;
  *rank = static_cast<uint32_t>(execution->output_dims[static_cast<size_t>(index)].size());
  return execution->result;
}

int plain::Execution_getOutputOperandDimensions(ANeuralNetworksExecution* execution, int32_t index,
                                                uint32_t* dimensions) {
  if (!execution || !dimensions) return ANEURALNETWORKS_UNEXPECTED_NULL;
  std::lock_guard lock(execution->mutex);
  if (const int code = find_output(execution, index)) return code;
  const std::vector<uint32_t>& dims = execution->output_dims[static_cast<size_t>(index)];
  if (dims.empty()) return ANEURALNETWORKS_BAD_DATA;
  std::copy(dims.begin(), dims.end(), dimensions);
  return execution->result;
}

int plain::Execution_getDuration(const ANeuralNetworksExecution* execution, int32_t durationCode, uint64_t* duration) {
  if (!execution || !duration) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *duration = UINT64_MAX;
  if (durationCode < 0 || durationCode > 3) return ANEURALNETWORKS_BAD_DATA;
  std::lock_guard lock(execution->mutex);
  if (execution->state != ExecutionState::kCompleted || execution->result != ANEURALNETWORKS_NO_ERROR ||
      !execution->measure) {
    return ANEURALNETWORKS_BAD_STATE;
  }
  *duration = execution->duration_ns;
  return ANEURALNETWORKS_NO_ERROR;
}
