// Computations: of an execution, at once, on a thread, after fences, in a burst.
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>

#include "nnapi_host/execution.h"

using namespace pinnace;
using namespace pinnace::nnapi_host;

namespace {

std::vector<uint32_t> dims_of(const TensorType& type) {
  std::vector<uint32_t> dims;
  for (const Dim& d : type.shape) dims.push_back(static_cast<uint32_t>(d.size));
  return dims;
}

/// What an output turned out to be fits what the client said of it.
bool fits(const Binding& binding, const std::vector<uint32_t>& dims) {
  if (binding.rank_open) return true;
  return std::equal(binding.dims.begin(), binding.dims.end(), dims.begin(), dims.end(),
                    [](uint32_t wanted, uint32_t is) { return wanted == 0 || wanted == is; });
}

Tensor host_tensor(TensorType type, std::byte* data, size_t bytes) {
  Tensor tensor;
  tensor.type = std::move(type);
  tensor.memory.host = data;
  tensor.memory.bytes = bytes;
  return tensor;
}

/// Runs a computation that start() has allowed on a thread of its own.
int launch(ANeuralNetworksExecution* execution, std::vector<std::shared_ptr<Completion>> dependencies, bool fence,
           ANeuralNetworksEvent** event) {
  auto completion = std::make_shared<Completion>();
  if (fence) completion->fence = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  auto* made = new ANeuralNetworksEvent{completion, {}};
  made->thread = std::thread([execution, completion, dependencies = std::move(dependencies)] {
    int code = ANEURALNETWORKS_NO_ERROR;
    for (const std::shared_ptr<Completion>& dependency : dependencies) {
      const int waited = dependency->wait();
      if (code == ANEURALNETWORKS_NO_ERROR) code = waited;
    }
    if (code != ANEURALNETWORKS_NO_ERROR) {
      execution->fail(code);
      completion->set(code);
      return;
    }
    completion->set(execution->compute());
  });
  *event = made;
  return ANEURALNETWORKS_NO_ERROR;
}

}  // namespace

int ANeuralNetworksExecution::check_ready() const {
  for (const Binding& input : inputs) {
    if (!input.set) return ANEURALNETWORKS_BAD_DATA;
    const bool open = input.rank_open || std::find(input.dims.begin(), input.dims.end(), 0u) != input.dims.end();
    if (input.data && open) return ANEURALNETWORKS_BAD_DATA;
  }
  const bool all = std::all_of(outputs.begin(), outputs.end(), [](const Binding& b) { return b.set; });
  return all ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_BAD_DATA;
}

int ANeuralNetworksExecution::start() {
  std::lock_guard lock(mutex);
  if (state == State::kComputation || (state == State::kCompleted && !reusable)) return ANEURALNETWORKS_BAD_STATE;
  if (const int code = check_ready()) return code;
  state = State::kComputation;
  return ANEURALNETWORKS_NO_ERROR;
}

void ANeuralNetworksExecution::fail(int code) {
  std::lock_guard lock(mutex);
  output_dims.clear();
  result = code;
  state = State::kCompleted;
}

int ANeuralNetworksExecution::compute() {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::vector<uint32_t>> found;
  const int code = run(found);
  const auto took = std::chrono::steady_clock::now() - begin;
  for (const Binding& output : outputs) {
    if (!output.device) continue;
    std::lock_guard lock(output.device->mutex);
    output.device->initialized = code == ANEURALNETWORKS_NO_ERROR;
  }
  std::lock_guard lock(mutex);
  output_dims = std::move(found);
  duration_ns = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
  result = code;
  state = State::kCompleted;
  return code;
}

int ANeuralNetworksExecution::run(std::vector<std::vector<uint32_t>>& found) {
  const nnapi::Model& model = engine->model();
  std::vector<InputArgument> arguments;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Binding& input = inputs[i];
    if (input.device) {
      std::lock_guard lock(input.device->mutex);
      if (!input.device->initialized) return ANEURALNETWORKS_OP_FAILED;
    }
    const nnapi::Operand& operand = model.operands[model.inputs[i]];
    const size_t bytes = input.data ? bytes_of(operand, input.dims, input.rank_open).value_or(0) : 0;
    arguments.push_back({input.data ? input.dims : std::vector<uint32_t>{}, !input.data, {input.data, bytes}});
  }
  const auto specialisation = engine->find(arguments);
  if (!specialisation.ok()) return code_of(specialisation.status());
  const Specialisation& special = **specialisation;

  std::vector<Tensor> in, out;
  for (uint32_t i : special.inputs) {
    TensorType type = nnapi::tensor_type(model.operands[model.inputs[i]], inputs[i].dims);
    if (type.dtype == DType::kBool) type.dtype = DType::kU8;
    in.push_back(host_tensor(std::move(type), inputs[i].data, arguments[i].data.size()));
  }
  bool room = true, known = true;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorType& type = special.outputs[i];
    const bool concrete = type.concrete();
    known &= concrete;
    if (concrete) {
      if (!fits(outputs[i], dims_of(type))) return ANEURALNETWORKS_OP_FAILED;
      if (type.bytes() > UINT32_MAX) return ANEURALNETWORKS_OP_FAILED;
      room &= !outputs[i].data || static_cast<int64_t>(outputs[i].length) >= type.bytes();
    }
    const bool direct = concrete && outputs[i].data;
    out.push_back(direct ? host_tensor(type, outputs[i].data, outputs[i].length) : Tensor{});
  }
  // With all shapes known nothing need run to tell the client that its memory is too small.
  if (known && !room) {
    for (const TensorType& type : special.outputs) found.push_back(dims_of(type));
    return ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE;
  }
  if (!room) std::fill(out.begin(), out.end(), Tensor{});

  auto session = (*specialisation)->take();
  if (!session.ok()) return code_of(session.status());
  const Status status = (*session)->run(in, out);
  if (!status.ok()) {
    (*specialisation)->give_back(std::move(*session));
    return code_of(status);
  }
  bool agree = true;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor made = (*session)->output(static_cast<int>(i));
    found.push_back(dims_of(made.type));
    agree &= fits(outputs[i], found.back());
    if (!outputs[i].data || out[i].memory.host) continue;
    const auto bytes = static_cast<size_t>(made.type.bytes());
    room &= bytes <= outputs[i].length;
    if (agree && room && bytes > 0) std::memcpy(outputs[i].data, made.memory.host, bytes);
  }
  (*specialisation)->give_back(std::move(*session));
  if (!agree) return ANEURALNETWORKS_OP_FAILED;
  return room ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE;
}

int ANeuralNetworksExecution_compute(ANeuralNetworksExecution* execution) {
  if (!execution) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (const int code = execution->start()) return code;
  return execution->compute();
}

int ANeuralNetworksExecution_startCompute(ANeuralNetworksExecution* execution, ANeuralNetworksEvent** event) {
  if (!event) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *event = nullptr;
  if (!execution) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (const int code = execution->start()) return code;
  return launch(execution, {}, false, event);
}

int ANeuralNetworksExecution_startComputeWithDependencies(ANeuralNetworksExecution* execution,
                                                          const ANeuralNetworksEvent* const* dependencies,
                                                          uint32_t num_dependencies, uint64_t duration,
                                                          ANeuralNetworksEvent** event) {
  if (!event) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *event = nullptr;
  if (!execution || (!dependencies && num_dependencies > 0)) return ANEURALNETWORKS_UNEXPECTED_NULL;
  // Events may be freed before what they stand for happens.
  std::vector<std::shared_ptr<Completion>> waits;
  for (const ANeuralNetworksEvent* dependency : std::span(dependencies, num_dependencies)) {
    if (!dependency) return ANEURALNETWORKS_UNEXPECTED_NULL;
    waits.push_back(dependency->completion);
  }
  if (duration != 0 && execution->explicit_devices != 1) return ANEURALNETWORKS_BAD_DATA;
  for (const Binding& output : execution->outputs) {
    const bool open = output.rank_open || std::find(output.dims.begin(), output.dims.end(), 0u) != output.dims.end();
    if (output.set && open) return ANEURALNETWORKS_BAD_DATA;
  }
  if (const int code = execution->start()) return code;
  return launch(execution, std::move(waits), true, event);
}

int ANeuralNetworksBurst_create(ANeuralNetworksCompilation* compilation, ANeuralNetworksBurst** burst) {
  if (!burst) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *burst = nullptr;
  if (!compilation) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (!compilation->engine) return ANEURALNETWORKS_BAD_STATE;
  *burst = new ANeuralNetworksBurst{compilation->engine, {}};
  return ANEURALNETWORKS_NO_ERROR;
}

void ANeuralNetworksBurst_free(ANeuralNetworksBurst* burst) {
  delete burst;
}

int ANeuralNetworksExecution_burstCompute(ANeuralNetworksExecution* execution, ANeuralNetworksBurst* burst) {
  if (!execution || !burst) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (execution->engine != burst->engine) return ANEURALNETWORKS_BAD_DATA;
  std::unique_lock running(burst->running, std::try_to_lock);
  if (!running) return ANEURALNETWORKS_BAD_STATE;
  if (const int code = execution->start()) return code;
  return execution->compute();
}
