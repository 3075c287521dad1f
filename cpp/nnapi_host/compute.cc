// Computations: of an execution, at once, on a thread, after fences, in a burst.
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/exception_boundary.h"
#include "nnapi_host/execution.h"
#include "nnapi_host/test_bed/test_bed.h"

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
  if (binding.dynamic_rank) return true;
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

/// NNAPI promises nothing about where a client's memory begins; kernels read whole elements.
bool aligned(const std::byte* data, const nnapi::Operand& operand) {
  return reinterpret_cast<uintptr_t>(data) % nnapi::info(operand.type).bytes == 0;
}

/// Numbers that nobody knows beforehand; where the system has none to give, of the clock.
std::array<int32_t, 2> draw_entropy() {
  std::array<int32_t, 2> drawn{};
  if (::getentropy(drawn.data(), sizeof drawn) != 0) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    std::memcpy(drawn.data(), &now, sizeof drawn);
  }
  return drawn;
}

/// Runs a computation that start() has allowed on a thread of its own; without memory or a thread for it nothing was
/// started.
/// `duration`: nanoseconds that it may take after its dependencies, 0: any time.
int launch(ANeuralNetworksExecution* execution, std::vector<std::shared_ptr<Completion>> dependencies, bool fence,
           const Deadline& deadline, uint64_t duration, ANeuralNetworksEvent** event) {
  const auto begin = [&] {
    auto completion = std::make_shared<Completion>();
    auto made = std::make_unique<ANeuralNetworksEvent>(completion);
    if (fence) completion->fence = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    auto thread = pinnace::Thread::start([=, dependencies = std::move(dependencies)] {
      int code = ANEURALNETWORKS_NO_ERROR;
      for (const std::shared_ptr<Completion>& dependency : dependencies) {
        const int waited = dependency->wait();
        if (code == ANEURALNETWORKS_NO_ERROR) code = waited;
      }
      if (code == ANEURALNETWORKS_NO_ERROR) {
        code = execution->compute(Deadline::earlier(deadline, Deadline(duration)));
      } else {
        execution->fail(code);
      }
      completion->set(code);
    });
    if (!thread.ok()) return code_of(thread.status());
    made->thread = std::move(*thread);
    *event = made.release();
    return int{ANEURALNETWORKS_NO_ERROR};
  };
  const int code = exception_boundary(begin, ANEURALNETWORKS_OUT_OF_MEMORY);
  if (code != ANEURALNETWORKS_NO_ERROR) execution->withdraw();
  return code;
}

}  // namespace

int ANeuralNetworksExecution::check_ready() const {
  for (const Binding& input : inputs) {
    if (!input.set) return ANEURALNETWORKS_BAD_DATA;
    const bool dynamic = input.dynamic_rank || std::find(input.dims.begin(), input.dims.end(), 0u) != input.dims.end();
    if (input.data && dynamic) return ANEURALNETWORKS_BAD_DATA;
  }
  const bool all = std::all_of(outputs.begin(), outputs.end(), [](const Binding& b) { return b.set; });
  return all ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_BAD_DATA;
}

int ANeuralNetworksExecution::start(Deadline& deadline) {
  std::lock_guard lock(mutex);
  if (state == State::kComputation || (state == State::kCompleted && !reusable)) return ANEURALNETWORKS_BAD_STATE;
  if (const int code = check_ready()) return code;
  state = State::kComputation;
  deadline = Deadline(timeout_ns);
  return ANEURALNETWORKS_NO_ERROR;
}

void ANeuralNetworksExecution::withdraw() {
  std::lock_guard lock(mutex);
  state = State::kPreparation;
}

void ANeuralNetworksExecution::mark_outputs(bool initialized) const {
  for (const Binding& output : outputs) {
    if (!output.device) continue;
    std::lock_guard lock(output.device->mutex);
    output.device->initialized = initialized;
  }
}

void ANeuralNetworksExecution::fail(int code) {
  mark_outputs(false);
  std::lock_guard lock(mutex);
  output_dims.clear();
  result = code;
  state = State::kCompleted;
}

int ANeuralNetworksExecution::compute(const Deadline& deadline) {
  TestBed* const bed = TestBed::get();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::vector<uint32_t>> found;
  const auto compute_and_tell = [&] {
    int result = bed ? bed->before_computation(*this) : ANEURALNETWORKS_NO_ERROR;
    if (result == ANEURALNETWORKS_NO_ERROR) result = run(found, deadline);
    if (bed) bed->after_computation(*this, result, found);
    return result;
  };
  const int code = exception_boundary(compute_and_tell, ANEURALNETWORKS_OUT_OF_MEMORY);
  const auto took = std::chrono::steady_clock::now() - begin;
  mark_outputs(code == ANEURALNETWORKS_NO_ERROR);
  std::lock_guard lock(mutex);
  output_dims = std::move(found);
  duration_ns = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
  result = code;
  state = State::kCompleted;
  return code;
}

int ANeuralNetworksExecution::run(std::vector<std::vector<uint32_t>>& found, const Deadline& deadline) {
  if (deadline.passed()) return ANEURALNETWORKS_MISSED_DEADLINE_TRANSIENT;
  const nnapi::Model& model = engine->model();
  std::vector<InputArgument> arguments;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Binding& input = inputs[i];
    if (input.device) {
      std::lock_guard lock(input.device->mutex);
      if (!input.device->initialized) return ANEURALNETWORKS_OP_FAILED;
    }
    const nnapi::Operand& operand = model.operands[model.inputs[i]];
    const size_t bytes = input.data ? bytes_of(operand, input.dims, input.dynamic_rank).value_or(0) : 0;
    arguments.push_back({input.data ? input.dims : std::vector<uint32_t>{}, !input.data, {input.data, bytes}});
  }
  const auto code_by = [&](const Status& status) {
    const bool late = status.code() == Code::kCancelled && deadline.passed();
    return late ? ANEURALNETWORKS_MISSED_DEADLINE_TRANSIENT : code_of(status);
  };
  const auto specialisation = engine->find(arguments, deadline);
  if (!specialisation.ok()) return code_by(specialisation.status());
  const Specialisation& special = **specialisation;

  std::vector<Tensor> in, out;
  std::vector<Buffer> copies;
  std::array<int32_t, 2> entropy{};
  for (uint32_t i : special.inputs) {
    if (i == nnapi::kEntropyInput) {
      entropy = draw_entropy();
      in.push_back(
          host_tensor({DType::kI32, {2}, nullptr}, reinterpret_cast<std::byte*>(entropy.data()), sizeof entropy));
      continue;
    }
    TensorType type = nnapi::tensor_type(model.operands[model.inputs[i]], inputs[i].dims);
    if (type.dtype == DType::kBool) type.dtype = DType::kU8;
    std::byte* data = inputs[i].data;
    const size_t bytes = arguments[i].data.size();
    if (!aligned(data, model.operands[model.inputs[i]])) {
      auto copy = Buffer::allocate(bytes, "an input");
      if (!copy.ok()) return code_of(copy.status());
      std::memcpy(copy->data(), data, bytes);
      data = copy->data();
      copies.push_back(std::move(*copy));
    }
    in.push_back(host_tensor(std::move(type), data, bytes));
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
    const bool direct = concrete && outputs[i].data && aligned(outputs[i].data, model.operands[model.outputs[i]]);
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
  Status status = (*session)->limit_loops(std::chrono::nanoseconds(std::max<uint64_t>(1, loop_timeout_ns)));
  if (status.ok()) status = run_until(deadline, **session, in, out);
  if (!status.ok()) {
    (*specialisation)->give_back(std::move(*session));
    // A loop that takes too long does so again; a deadline that was missed may be kept the next time.
    return code_by(status);
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

int plain::Execution_compute(ANeuralNetworksExecution* execution) {
  if (!execution) return ANEURALNETWORKS_UNEXPECTED_NULL;
  Deadline deadline;
  if (const int code = execution->start(deadline)) return code;
  return execution->compute(deadline);
}

int plain::Execution_startCompute(ANeuralNetworksExecution* execution, ANeuralNetworksEvent** event) {
  if (!event) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *event = nullptr;
  if (!execution) return ANEURALNETWORKS_UNEXPECTED_NULL;
  Deadline deadline;
  if (const int code = execution->start(deadline)) return code;
  return launch(execution, {}, false, deadline, 0, event);
}

int plain::Execution_startComputeWithDependencies(ANeuralNetworksExecution* execution,
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
    const bool dynamic =
        output.dynamic_rank || std::find(output.dims.begin(), output.dims.end(), 0u) != output.dims.end();
    if (output.set && dynamic) return ANEURALNETWORKS_BAD_DATA;
  }
  Deadline deadline;
  if (const int code = execution->start(deadline)) return code;
  return launch(execution, std::move(waits), true, deadline, duration, event);
}

int plain::Burst_create(ANeuralNetworksCompilation* compilation, ANeuralNetworksBurst** burst) {
  if (!burst) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *burst = nullptr;
  if (!compilation) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (!compilation->engine) return ANEURALNETWORKS_BAD_STATE;
  *burst = new ANeuralNetworksBurst{compilation->engine, {}};
  return ANEURALNETWORKS_NO_ERROR;
}

void plain::Burst_free(ANeuralNetworksBurst* burst) {
  delete burst;
}

int plain::Execution_burstCompute(ANeuralNetworksExecution* execution, ANeuralNetworksBurst* burst) {
  if (!execution || !burst) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (execution->engine != burst->engine) return ANEURALNETWORKS_BAD_DATA;
  std::unique_lock running(burst->running, std::try_to_lock);
  if (!running) return ANEURALNETWORKS_BAD_STATE;
  Deadline deadline;
  if (const int code = execution->start(deadline)) return code;
  return execution->compute(deadline);
}
