// Calls that build, compile and execute.
#include "backends/nnapi/driver_model.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace pinnace::nnapi_client {

using nnapi::Lifetime;
using nnapi::Operand;

namespace {
/// How often what fails with a transient code is tried.
constexpr int kAttempts = 3;
/// Idle slots that are kept.
constexpr size_t kMostIdle = 4;
/// Inputs and outputs up to this size are copied into memory that an execution stays bound to.
constexpr size_t kMostCopiedBytes = 1 << 20;
/// How long NNAPI lets a loop run at most.
constexpr uint64_t kLongestLoopNs = 15'000'000'000;

/// An object of NNAPI's that goes with a scope.
template <class Object>
class Freed {
 public:
  Freed(void (*free)(Object*), Object* object) : free_(free), object_(object) {}
  ~Freed() { free_(object_); }
  Freed(const Freed&) = delete;
  Freed& operator=(const Freed&) = delete;

 private:
  void (*free_)(Object*);
  Object* object_;
};
}  // namespace

Status DriverModel::failure(const char* call, int code) const {
  return fail_with(Code::kDeviceLost, "NNAPI device ", device_.name, ": ", call, " gives ", result_name(code));
}

#define CALL(function, ...)                                                                            \
  do {                                                                                                 \
    if (const int code_ = library_->functions.function(__VA_ARGS__)) return failure(#function, code_); \
  } while (false)

Result<std::unique_ptr<DriverModel>> DriverModel::build(std::shared_ptr<const Library> library,
                                                        const DeviceInfo& device, const DriverOptions& options,
                                                        const nnapi::Model& model,
                                                        std::span<const ConstantInMemory> constants) {
  std::unique_ptr<DriverModel> made(new DriverModel);
  made->library_ = std::move(library);
  made->device_ = device;
  made->options_ = options;
  made->constants_.assign(constants.begin(), constants.end());
  PINNACE_TRY(made->add_all(model, nullptr, made->model_));
  if (!options.cache_folder.empty() && options.feature_level >= 3) made->make_token(model);
  return made;
}

DriverModel::~DriverModel() {
  idle_.clear();
  if (compilation_) library_->functions.Compilation_free(compilation_);
  if (model_) library_->functions.Model_free(model_);
  for (Model* body : bodies_) library_->functions.Model_free(body);
}

void DriverModel::hash_model(Hasher& hasher, const nnapi::Model& model, const nnapi::Model* body) const {
  const auto add = [&](const void* data, size_t size) { hasher.add({static_cast<const std::byte*>(data), size}); };
  for (const Operand& o : model.operands) {
    const int32_t head[] = {static_cast<int32_t>(o.type), static_cast<int32_t>(o.lifetime), o.zero_point,
                            static_cast<int32_t>(o.dims.size()), static_cast<int32_t>(o.channel_scales.size())};
    add(head, sizeof head);
    add(&o.scale, sizeof o.scale);
    add(o.dims.data(), o.dims.size() * sizeof(uint32_t));
    add(o.channel_scales.data(), o.channel_scales.size() * sizeof(float));
    add(o.data.data(), o.data.size());
    if (o.model) hash_model(hasher, *o.model, o.model.get());
  }
  for (const ConstantInMemory& c : constants_) {
    if (c.body != body) continue;
    add(&c.operand, sizeof c.operand);
    add(c.place.data, model.operands[c.operand].bytes());
  }
  for (const nnapi::Operation& op : model.operations) {
    add(&op.code, sizeof op.code);
    add(op.inputs.data(), op.inputs.size() * sizeof(uint32_t));
    add(op.outputs.data(), op.outputs.size() * sizeof(uint32_t));
  }
  add(model.inputs.data(), model.inputs.size() * sizeof(uint32_t));
  add(model.outputs.data(), model.outputs.size() * sizeof(uint32_t));
}

/// A hash of all that a compilation depends on: the model with its constants, the options, the driver.
void DriverModel::make_token(const nnapi::Model& model) {
  for (uint32_t part = 0; part < 4; ++part) {
    Hasher hasher;
    const auto add = [&](const void* data, size_t size) { hasher.add({static_cast<const std::byte*>(data), size}); };
    const auto add_text = [&](const std::string& text) { add(text.c_str(), text.size() + 1); };
    add(&part, sizeof part);
    add_text(device_.name);
    add_text(device_.version);
    const int facts[] = {options_.feature_level, options_.relaxed, options_.preference};
    add(facts, sizeof facts);
    hash_model(hasher, model, nullptr);
    const uint64_t digest = hasher.digest();
    std::memcpy(token_ + part * sizeof digest, &digest, sizeof digest);
  }
}

Status DriverModel::add_all(const nnapi::Model& model, const nnapi::Model* body, Model*& to) {
  CALL(Model_create, &to);
  for (size_t i = 0; i < model.operands.size(); ++i) {
    const Operand& o = model.operands[i];
    const OperandType type{static_cast<int32_t>(o.type), static_cast<uint32_t>(o.dims.size()),
                           o.dims.empty() ? nullptr : o.dims.data(), o.scale, o.zero_point};
    const auto index = static_cast<int32_t>(i);
    CALL(Model_addOperand, to, &type);
    if (!o.channel_scales.empty()) {
      const ChannelQuantization q{o.channel_dim, static_cast<uint32_t>(o.channel_scales.size()),
                                  o.channel_scales.data()};
      CALL(Model_setOperandSymmPerChannelQuantParams, to, index, &q);
    }
    if (o.lifetime == Lifetime::kOmitted) CALL(Model_setOperandValue, to, index, nullptr, 0);
    if (o.lifetime == Lifetime::kConstant && !o.data.empty()) {
      CALL(Model_setOperandValue, to, index, o.data.data(), o.data.size());
      owners_.push_back(o.owner);
    }
    if (o.lifetime == Lifetime::kModel) {
      // Finished before it is referred to.
      const size_t at = bodies_.size();
      bodies_.push_back(nullptr);
      struct Kept {
        std::vector<Model*>& bodies;
        size_t at;
        Model* made = nullptr;
        ~Kept() { bodies[at] = made; }
      } body_of{bodies_, at};
      PINNACE_TRY(add_all(*o.model, o.model.get(), body_of.made));
      CALL(Model_setOperandValueFromModel, to, index, body_of.made);
    }
  }
  for (const ConstantInMemory& c : constants_) {
    if (c.body != body) continue;
    CALL(Model_setOperandValueFromMemory, to, static_cast<int32_t>(c.operand), c.place.memory->memory(), c.place.offset,
         model.operands[c.operand].bytes());
  }
  for (const nnapi::Operation& op : model.operations) {
    CALL(Model_addOperation, to, op.code, static_cast<uint32_t>(op.inputs.size()), op.inputs.data(),
         static_cast<uint32_t>(op.outputs.size()), op.outputs.data());
  }
  CALL(Model_identifyInputsAndOutputs, to, static_cast<uint32_t>(model.inputs.size()), model.inputs.data(),
       static_cast<uint32_t>(model.outputs.size()), model.outputs.data());
  if (options_.relaxed && options_.feature_level >= 2) CALL(Model_relaxComputationFloat32toFloat16, to, true);
  CALL(Model_finish, to);
  return {};
}

Result<std::vector<bool>> DriverModel::supported(size_t operations) const {
  std::vector<bool> taken(operations, true);
  if (options_.feature_level < 3 || !device_.device) return taken;
  const std::unique_ptr<bool[]> answers(new bool[operations]());
  const Device* const devices[] = {device_.device};
  CALL(Model_getSupportedOperationsForDevices, model_, devices, 1, answers.get());
  for (size_t i = 0; i < operations; ++i) taken[i] = answers[i];
  return taken;
}

Status DriverModel::create_compilation() {
  const bool named = options_.feature_level >= 3 && device_.device;
  if (named) {
    const Device* const devices[] = {device_.device};
    CALL(Compilation_createForDevices, model_, devices, 1, &compilation_);
  } else {
    CALL(Compilation_create, model_, &compilation_);
  }
  CALL(Compilation_setPreference, compilation_, options_.preference);
  if (named && !options_.cache_folder.empty()) {
    CALL(Compilation_setCaching, compilation_, options_.cache_folder.c_str(), token_);
  }
  if (options_.feature_level >= 4) {
    CALL(Compilation_setPriority, compilation_, options_.priority);
    if (named && options_.deadline_ns) CALL(Compilation_setTimeout, compilation_, options_.deadline_ns);
  }
  return {};
}

Status DriverModel::compile() {
  for (int attempt = 1;; ++attempt) {
    PINNACE_TRY(create_compilation());
    const int code = library_->functions.Compilation_finish(compilation_);
    if (!code) return {};
    if (!transient(code) || attempt == kAttempts) return failure("Compilation_finish", code);
    // What failed is of no further use.
    library_->functions.Compilation_free(std::exchange(compilation_, nullptr));
  }
}

// ------------------------------------------------------------------------------------------------------------- runs

DriverModel::Slot::~Slot() {
  if (execution) library->functions.Execution_free(execution);
  if (burst) library->functions.Burst_free(burst);
}

void DriverModel::give_back(std::unique_ptr<Slot> slot) const {
  const ProcessLock lock(mutex_);
  if (lock.held() && idle_.size() < kMostIdle) idle_.push_back(std::move(slot));
}

Result<std::unique_ptr<DriverModel::Slot>> DriverModel::take_slot(std::span<const Bytes> inputs,
                                                                  std::span<const Bytes> outputs,
                                                                  std::unique_ptr<Slot>* own) const {
  if (own) {
    if (*own) return std::move(*own);
  } else {
    const ProcessLock lock(mutex_);
    if (lock.held() && !idle_.empty()) {
      std::unique_ptr<Slot> slot = std::move(idle_.back());
      idle_.pop_back();
      return slot;
    }
  }
  auto slot = std::make_unique<Slot>(library_);
  if (options_.feature_level >= 3) CALL(Burst_create, compilation_, &slot->burst);
  if (options_.feature_level >= 5) PINNACE_TRY(bind(*slot, inputs, outputs));
  return slot;
}

Status DriverModel::set_input(Execution* execution, size_t i, const Bytes& b) const {
  const auto index = static_cast<int32_t>(i);
  if (!b.memory) {
    CALL(Execution_setInput, execution, index, nullptr, b.data, b.size);
  } else {
    // A device's own memory is used whole, which is said by zeros.
    const bool whole = !b.memory->data();
    CALL(Execution_setInputFromMemory, execution, index, nullptr, b.memory->memory(), b.offset, whole ? 0 : b.size);
  }
  return {};
}

Status DriverModel::set_output(Execution* execution, size_t i, const Bytes& b) const {
  const auto index = static_cast<int32_t>(i);
  if (!b.memory) {
    CALL(Execution_setOutput, execution, index, nullptr, b.data, b.size);
  } else {
    const bool whole = !b.memory->data();
    CALL(Execution_setOutputFromMemory, execution, index, nullptr, b.memory->memory(), b.offset, whole ? 0 : b.size);
  }
  return {};
}

bool DriverModel::make_memories(uint32_t input, uint32_t output, std::shared_ptr<SharedMemory> (&to)[2]) const {
  const Functions& f = library_->functions;
  MemoryDesc* description = nullptr;
  if (f.MemoryDesc_create(&description)) return false;
  const Freed freed(f.MemoryDesc_free, description);
  if (!f.MemoryDesc_addInputRole(description, compilation_, input, 1.0f) &&
      !f.MemoryDesc_addOutputRole(description, compilation_, output, 1.0f) && !f.MemoryDesc_finish(description)) {
    for (auto& memory : to) memory = SharedMemory::of_description(library_, description);
  }
  if (to[0] && to[1]) return true;
  to[0] = to[1] = nullptr;
  return false;
}

Status DriverModel::copy(const SharedMemory& from, const SharedMemory& to) const {
  for (int attempt = 1;; ++attempt) {
    const int code = library_->functions.Memory_copy(from.memory(), to.memory());
    if (!code) return {};
    if (!transient(code) || attempt == kAttempts) return failure("Memory_copy", code);
  }
}

Status DriverModel::bind(Slot& slot, std::span<const Bytes> inputs, std::span<const Bytes> outputs) const {
  size_t total = 0;
  for (const auto& list : {inputs, outputs}) {
    for (const Bytes& b : list) total += b.memory ? 0 : aligned_size(b.size);
  }
  if (total > kMostCopiedBytes) return {};
  PINNACE_ASSIGN(slot.memory, SharedMemory::create(library_, total, "an NNAPI execution's inputs and outputs"));
  CALL(Execution_create, compilation_, &slot.execution);
  CALL(Execution_setReusable, slot.execution, true);
  if (options_.deadline_ns) CALL(Execution_setTimeout, slot.execution, options_.deadline_ns);
  if (!bodies_.empty()) CALL(Execution_setLoopTimeout, slot.execution, kLongestLoopNs);
  size_t offset = 0;
  const auto placed = [&](const Bytes& b) {
    if (b.memory) return b;
    const size_t at = offset;
    offset += aligned_size(b.size);
    return Bytes{nullptr, b.size, slot.memory.get(), at};
  };
  for (size_t i = 0; i < inputs.size(); ++i) PINNACE_TRY(set_input(slot.execution, i, placed(inputs[i])));
  for (size_t i = 0; i < outputs.size(); ++i) PINNACE_TRY(set_output(slot.execution, i, placed(outputs[i])));
  return {};
}

int DriverModel::compute(Execution* execution, const Slot& slot, const char*& call) const {
  const Functions& f = library_->functions;
  call = "Execution_burstCompute";
  if (slot.burst) return f.Execution_burstCompute(execution, slot.burst);
  Event* event = nullptr;
  call = "Execution_startCompute";
  int code = f.Execution_startCompute(execution, &event);
  if (!code) {
    call = "Event_wait";
    code = f.Event_wait(event);
  }
  if (event) f.Event_free(event);
  return code;
}

/// By the execution that is bound to the slot's own memory.
Status DriverModel::run_bound(const Slot& slot, std::span<const Bytes> inputs, std::span<const Bytes> outputs) const {
  std::byte* at = slot.memory->data();
  for (const Bytes& b : inputs) {
    if (b.memory) continue;
    std::memcpy(at, b.data, b.size);
    at += aligned_size(b.size);
  }
  int code = kNoError;
  const char* call = "";
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    code = compute(slot.execution, slot, call);
    if (!again(code)) break;
  }
  if (code) return failure(call, code);
  for (const Bytes& b : outputs) {
    if (b.memory) continue;
    std::memcpy(b.data, at, b.size);
    at += aligned_size(b.size);
  }
  return {};
}

/// By an execution of its own, on the caller's memory. `code` is what computing gave.
Status DriverModel::run_once(const Slot& slot, std::span<const Bytes> inputs, std::span<const Bytes> outputs, int& code,
                             std::chrono::nanoseconds loop_limit, uint64_t* device_ns) const {
  const Functions& f = library_->functions;
  Execution* execution = nullptr;
  CALL(Execution_create, compilation_, &execution);
  const Freed freed(f.Execution_free, execution);
  const bool measures = device_ns && options_.feature_level >= 3 && device_.device;
  const auto prepare = [&]() -> Status {
    for (size_t i = 0; i < inputs.size(); ++i) PINNACE_TRY(set_input(execution, i, inputs[i]));
    for (size_t i = 0; i < outputs.size(); ++i) PINNACE_TRY(set_output(execution, i, outputs[i]));
    if (measures) CALL(Execution_setMeasureTiming, execution, true);
    if (options_.feature_level >= 4 && device_.device && options_.deadline_ns) {
      CALL(Execution_setTimeout, execution, options_.deadline_ns);
    }
    if (!bodies_.empty()) {
      const auto limit = static_cast<uint64_t>(loop_limit.count());
      CALL(Execution_setLoopTimeout, execution, limit ? std::min(limit, kLongestLoopNs) : kLongestLoopNs);
    }
    return {};
  };
  Status status = prepare();
  const char* call = "";
  if (status.ok()) {
    code = compute(execution, slot, call);
    const bool late = code == kMissedDeadlineTransient || code == kMissedDeadlinePersistent;
    if (late && loop_limit.count() > 0) {
      status = fail_with(Code::kCancelled, "NNAPI device ", device_.name, ": a loop had not ended after ",
                         loop_limit.count(), " ns");
    } else if (code) {
      status = failure(call, code);
    }
  }
  if (status.ok() && measures) {
    uint64_t duration = UINT64_MAX;  // unknown
    if (f.Execution_getDuration(execution, 0, &duration) || duration == UINT64_MAX) duration = 0;
    *device_ns = duration;
  }
  return status;
}

Status DriverModel::run(std::span<const Bytes> inputs, std::span<const Bytes> outputs,
                        std::chrono::nanoseconds loop_limit, uint64_t* device_ns, std::unique_ptr<Slot>* own) const {
  if (bodies_.empty()) loop_limit = {};
  PINNACE_ASSIGN(std::unique_ptr<Slot> slot, take_slot(inputs, outputs, own));
  Status status;
  if (slot->execution && !device_ns && loop_limit.count() == 0) {
    status = run_bound(*slot, inputs, outputs);
  } else {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      int code = kNoError;
      status = run_once(*slot, inputs, outputs, code, loop_limit, device_ns);
      if (!again(code)) break;
    }
  }
  if (status.ok() && own) {
    *own = std::move(slot);
  } else if (status.ok()) {
    give_back(std::move(slot));
  }
  return status;
}

#undef CALL

}  // namespace pinnace::nnapi_client
