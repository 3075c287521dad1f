// Planning, recording, and running what was recorded.
#include "backends/gpu/executable.h"

#include <algorithm>
#include <cstring>

#include "backends/gpu/cache_folder.h"
#include "backends/gpu/kept_states.h"
#include "backends/gpu/transfer.h"
#include "base/offset_plan.h"

namespace pinnace::gpu {
namespace {

constexpr size_t kStep = kBufferStep;  // no device asks for a larger alignment
size_t stepped(size_t bytes) {
  return (bytes + kStep - 1) / kStep * kStep;
}

/// A list is submitted by itself after about this much work: 20 ms on a phone's GPU of 50 billion multiply-adds a
/// second, far below any watchdog, and 1,000 times what a submit costs.
constexpr double kSliceWork = 1e9;

/// The device is well and does not do this run: see name_lost in compile/plan.h.
Status refused(Rule rule, std::string text) {
  return std::move(Status(Code::kDeviceLost, std::move(text)).with_rule(info(rule).id));
}

/// With a rule the device is well.
bool lost(const Status& status) {
  return status.code() == Code::kDeviceLost && status.rule().empty();
}

}  // namespace

Status without_device(const Status& status) {
  if (status.code() != Code::kUnsupported && status.code() != Code::kOutOfMemory) return status;
  return std::move(Status(Code::kDeviceLost, status.message()).with_rule(info(Rule::kDeviceLimit).id));
}

Result<std::unique_ptr<Executable>> GpuExecutable::compile(FittedSegment fitted, const Segment& segment,
                                                           std::shared_ptr<Context> context, std::string_view backend) {
  for (const Verdict& verdict : fitted.verdicts) {
    if (!verdict.supported) {
      return unsupported(verdict.text, ", ", verdict.value, " (rule ", verdict.rule, ")");
    }
  }
  auto made = std::unique_ptr<GpuExecutable>(new GpuExecutable);
  made->context_ = std::move(context);
  made->backend_ = backend;
  made->notices_ = std::move(fitted.notices);
  if (const std::string problem = cache_problem(); !problem.empty() && !made->notices_.empty()) {
    std::string& notice = made->notices_.front();
    notice += str_cat(notice.empty() ? "" : "; ", "pipelines are not kept: ", problem);
  }
  LoweredSegment& lowered = fitted.lowered;
  made->nodes_ = std::move(lowered.nodes);
  made->kernels_ = std::move(lowered.kernels);
  made->error_labels_ = std::move(lowered.error_labels);
  made->tensors_ = std::move(lowered.tensors);
  made->steps_ = std::move(lowered.steps);
  PINNACE_ASSIGN(const auto store, WeightStore::of(segment.packed, backend));
  PINNACE_ASSIGN(WeightStore::Placed placed, store->place(made->context_, lowered.weights));
  made->weights_ = std::move(placed.bindings);
  made->held_ = std::move(placed.owner);
  made->tables_ = std::move(placed.tables);
  made->find_states(segment);
  PINNACE_TRY(made->make_ready());
  PINNACE_TRY(made->plan());
  PINNACE_ASSIGN(auto first, made->instance());
  made->free_.push_back(std::move(first));
  return std::unique_ptr<Executable>(std::move(made));
}

void GpuExecutable::find_states(const Segment& segment) {
  const auto exact = [](const TensorType& type) {
    switch (type.dtype) {
      case DType::kF32:
      case DType::kI32:
      case DType::kI64:
      case DType::kBool:
        return true;
      default:
        return false;  // 32 bits may hold what the type would round or wrap
    }
  };
  const auto tensor_of = [&](DeviceTensor::Place place, size_t index) {
    DeviceTensor* found = nullptr;
    for (DeviceTensor& t : tensors_) {
      if (t.place == place && t.index == index) found = &t;
    }
    return found;
  };
  states_.resize(segment.states.size());
  for (size_t i = 0; i < segment.states.size() && !steps_.empty(); ++i) {
    const auto& [index, input, output] = segment.states[i];
    const TensorType& type = segment.type_inference.types[segment.inputs[input]];
    DeviceTensor* const in = tensor_of(DeviceTensor::Place::kInput, input);
    DeviceTensor* const out = tensor_of(DeviceTensor::Place::kOutput, output);
    if (!exact(type) || type.elements() == 0 || !in || !out) continue;
    in->place = DeviceTensor::Place::kState;
    out->place = DeviceTensor::Place::kNextState;
    in->index = out->index = i;
    states_[i] = State{type};
  }
}

Status GpuExecutable::make_ready() {
  std::vector<KernelKey> keys;
  for (const Step& step : steps_) keys.push_back(step.kernel);
  PINNACE_ASSIGN(ready_, context_->kernels(keys));
  return {};
}

Status GpuExecutable::plan() {
  block_ = context_->caps().max_buffer_bytes;
  std::vector<Lifetime> lifetimes(tensors_.size());
  std::vector<bool> used(tensors_.size(), false);
  for (size_t s = 0; s < steps_.size(); ++s) {
    for (TensorId id : steps_[s].bindings) {
      const auto t = static_cast<size_t>(id);
      Lifetime& life = lifetimes[t];
      if (!used[t]) life.first = static_cast<int32_t>(s);
      used[t] = true;
      life.last = static_cast<int32_t>(s);
      if (tensors_[t].place == DeviceTensor::Place::kActivation) life.bytes = stepped(tensors_[t].bytes);
    }
  }
  OffsetPlan offsets = plan_offsets(lifetimes, block_);
  activation_bytes_ = offsets.total;
  offsets_ = std::move(offsets.offsets);
  const auto take = [this](size_t& total, size_t bytes) {
    if (const size_t left = block_ - total % block_; left < stepped(bytes)) total += left;
    return std::exchange(total, total + stepped(bytes));
  };
  for (size_t t = 0; t < tensors_.size(); ++t) {
    if (tensors_[t].place == DeviceTensor::Place::kActivation) continue;
    const bool in = tensors_[t].place == DeviceTensor::Place::kInput;
    if (tensors_[t].place == DeviceTensor::Place::kWeight) continue;
    if (tensors_[t].place == DeviceTensor::Place::kErrorRecord) continue;
    auto& places = in ? upload_offsets_ : download_offsets_;
    size_t& total = in ? upload_bytes_ : download_bytes_;
    if (tensors_[t].bytes > block_) {  // nor does any step bind it: within_limits() would have refused it
      return unsupported(backend_, " has an input of ", tensors_[t].bytes, " bytes, its buffers have ", block_);
    }
    if (tensors_[t].place == DeviceTensor::Place::kState) {
      states_[tensors_[t].index]->place = offsets_[t] = take(state_bytes_, tensors_[t].bytes);
    }
    if (tensors_[t].place == DeviceTensor::Place::kState || tensors_[t].place == DeviceTensor::Place::kNextState) {
      continue;
    }
    if (places.size() <= tensors_[t].index) places.resize(tensors_[t].index + 1, SIZE_MAX);
    places[tensors_[t].index] = offsets_[t] = take(total, tensors_[t].bytes);
  }
  for (size_t i = 0; i < error_labels_.size(); ++i) error_offsets_.push_back(take(download_bytes_, kStep));
  for (size_t t = 0; t < tensors_.size(); ++t) {
    if (tensors_[t].place == DeviceTensor::Place::kErrorRecord) offsets_[t] = error_offsets_[tensors_[t].index];
    if (tensors_[t].place == DeviceTensor::Place::kNextState) offsets_[t] = states_[tensors_[t].index]->place;
  }
  double work = 0;
  for (size_t s = 0; s < steps_.size(); ++s) {
    if (s == 0 || work > kSliceWork) {
      slices_.push_back(s);
      work = 0;
    }
    work += steps_[s].work;
  }
  return {};
}

Binding GpuExecutable::binding(const Instance& instance, int now, const Step& step, size_t b) const {
  const auto id = static_cast<size_t>(step.bindings[b]);
  const DeviceTensor& t = tensors_[id];
  Binding all = {nullptr, offsets_[id] % block_, t.bytes};
  const size_t nth = offsets_[id] / block_;
  switch (t.place) {
    case DeviceTensor::Place::kActivation:
      all.buffer = instance.activations[nth].get();
      break;
    case DeviceTensor::Place::kInput:
      all.buffer = instance.upload[nth].get();
      break;
    case DeviceTensor::Place::kOutput:
    case DeviceTensor::Place::kErrorRecord:
      all.buffer = instance.download[nth].get();
      break;
    case DeviceTensor::Place::kWeight:
      all = weights_[t.index];
      break;
    case DeviceTensor::Place::kState:
      all.buffer = instance.states[now][nth].get();
      break;
    case DeviceTensor::Place::kNextState:
      all.buffer = instance.states[1 - now][nth].get();
      break;
  }
  if (step.windows.empty()) return all;
  return {all.buffer, all.offset + step.windows[b].offset, step.windows[b].bytes};
}

Status GpuExecutable::record(const Instance& instance, int now, bool timed,
                             std::vector<std::unique_ptr<CommandList>>& lists) const {
  struct Range {
    const DeviceBuffer* buffer;
    size_t begin, end;
    bool write;
  };
  std::vector<Range> since;  // what was read and written since the last barrier
  std::vector<Binding> bindings;
  for (size_t i = 0; i < slices_.size(); ++i) {
    const size_t first = slices_[i], last = i + 1 < slices_.size() ? slices_[i + 1] : steps_.size();
    PINNACE_ASSIGN(auto list, context_->device().command_list(timed ? static_cast<uint32_t>(last - first + 1) : 0));
    if (timed) list->timestamp(0);
    since.clear();
    uint32_t barriers = 0;
    for (size_t s = first; s < last; ++s) {
      const Step& step = steps_[s];
      const uint32_t written = ready_[s]->code().written;
      bindings.clear();
      bool wait = false;
      for (size_t b = 0; b < step.bindings.size(); ++b) {
        bindings.push_back(binding(instance, now, step, b));
        const Binding& own = bindings.back();
        for (const Range& r : since) {
          const bool meet = r.buffer == own.buffer && r.begin < own.offset + own.bytes && own.offset < r.end;
          wait |= meet && (r.write || (written >> b & 1));
        }
      }
      if (wait) {
        if (++barriers != context_->dropped_barrier()) list->barrier();
        since.clear();
      }
      list->dispatch(*ready_[s], bindings, step.push, step.groups);
      for (size_t b = 0; b < bindings.size(); ++b) {
        since.push_back(
            {bindings[b].buffer, bindings[b].offset, bindings[b].offset + bindings[b].bytes, (written >> b & 1) != 0});
      }
      if (timed) list->timestamp(static_cast<uint32_t>(s - first + 1));
    }
    const Memory &next = instance.states[1 - now], &copies = instance.copies[1 - now];
    if (last == steps_.size() && !copies.empty() && ++barriers != context_->dropped_barrier()) list->barrier();
    for (size_t k = 0; last == steps_.size() && k < copies.size(); ++k) {
      list->copy(*next[k], 0, *copies[k], 0, next[k]->bytes());
    }
    PINNACE_TRY(list->finish());
    lists.push_back(std::move(list));
  }
  return {};
}

Status GpuExecutable::record_copies(Instance& instance) const {
  for (int which = 0; which < 2 && !instance.copies[which].empty(); ++which) {
    PINNACE_ASSIGN(auto list, context_->device().command_list(0));
    const Memory &states = instance.states[which], &copies = instance.copies[which];
    for (size_t k = 0; k < copies.size(); ++k) list->copy(*copies[k], 0, *states[k], 0, copies[k]->bytes());
    PINNACE_TRY(list->finish());
    instance.copies_enter[which] = std::move(list);
  }
  return {};
}

Result<GpuExecutable::Memory> GpuExecutable::memory(size_t bytes, BufferUse use) const {
  Memory made;
  for (; bytes; bytes -= made.back()->bytes()) {
    PINNACE_ASSIGN(auto buffer, context_->device().buffer(std::min(bytes, block_), use));
    made.push_back(std::move(buffer));
  }
  return made;
}

Result<std::unique_ptr<GpuExecutable::Instance>> GpuExecutable::instance() const {
  {
    const ProcessLock lock(mutex_);
    if (lock.held() && !free_.empty()) {
      auto taken = std::move(free_.back());
      free_.pop_back();
      return taken;
    }
  }
  auto made = std::make_unique<Instance>();
  PINNACE_ASSIGN(made->activations, memory(activation_bytes_, BufferUse::kDevice));
  PINNACE_ASSIGN(made->upload, memory(upload_bytes_, BufferUse::kUpload));
  PINNACE_ASSIGN(made->download, memory(download_bytes_, BufferUse::kDownload));
  for (int which = 0; which < 2 && state_bytes_ > 0; ++which) {
    const bool unified = context_->caps().unified_memory;
    PINNACE_ASSIGN(made->states[which], memory(state_bytes_, unified ? BufferUse::kDownload : BufferUse::kDevice));
    if (unified) continue;
    PINNACE_ASSIGN(made->copies[which], memory(state_bytes_, BufferUse::kDownload));
  }
  PINNACE_TRY(record_copies(*made));
  for (int now = 0; now < (state_bytes_ > 0 ? 2 : 1); ++now) {
    PINNACE_TRY(record(*made, now, false, made->recorded[now].lists));
  }
  return made;
}

Result<std::unique_ptr<KeptStates>> GpuExecutable::keep_states(bool /*survives*/) const {
  if (state_bytes_ == 0) return std::unique_ptr<KeptStates>();
  auto own = instance();
  if (own) return std::unique_ptr<KeptStates>(std::make_unique<States>(*this, std::move(*own)));
  if (own.status().code() == Code::kDeviceLost) context_->lose();
  return without_device(own.status());
}

Status GpuExecutable::run(const RunContext& context, std::span<const TensorView> inputs,
                          std::span<const TensorView> outputs) const {
  if (context_->lost()) return device_lost(backend_);
  Status status;
  if (state_bytes_ > 0) {
    auto& states = static_cast<States&>(*context.states);
    status = run(states.instance(), states.now(), states.written(), context, inputs, outputs);
    if (status.ok()) states.set_entered();
  } else {
    auto own = instance();
    status = own ? run(**own, 0, false, context, inputs, outputs) : own.status();
    // A list may still be under way on a lost device: its memory is not for another run.
    if (const ProcessLock lock(mutex_); own && !lost(status) && lock.held()) free_.push_back(std::move(*own));
  }
  if (lost(status)) context_->lose();
  return status;
}

Status GpuExecutable::run(Instance& instance, int now, bool copies_enter, const RunContext& context,
                          std::span<const TensorView> inputs, std::span<const TensorView> outputs) const {
  const auto start = std::chrono::steady_clock::now();
  PINNACE_TRY(enter(instance, inputs));
  PINNACE_TRY(submit(instance, now, copies_enter, context));
  PINNACE_TRY(device_errors(instance));
  for (size_t i = 0; i < outputs.size() && i < download_offsets_.size(); ++i) {
    if (download_offsets_[i] != SIZE_MAX) from_device(host(instance.download, download_offsets_[i]), outputs[i]);
  }
  return context.timings ? profile(instance.recorded[now], context, start) : Status();
}

Status GpuExecutable::refused_wide(std::string_view what, int64_t number) const {
  return refused(Rule::kWide, str_cat(backend_, " has 32-bit integers, and ", what, " is ", number));
}

Status GpuExecutable::enter(Instance& instance, std::span<const TensorView> inputs) const {
  for (size_t i = 0; i < inputs.size() && i < upload_offsets_.size(); ++i) {
    if (upload_offsets_[i] == SIZE_MAX) continue;
    const auto wide = to_device(inputs[i], host(instance.upload, upload_offsets_[i]));
    if (wide) return refused_wide("an input", *wide);
  }
  for (const size_t place : error_offsets_) std::memset(host(instance.download, place), 0, kStep);
  return {};
}

Status GpuExecutable::device_errors(const Instance& instance) const {
  Status first;
  for (size_t i = 0; i < error_labels_.size(); ++i) {
    int32_t words[3];
    std::memcpy(words, host(instance.download, error_offsets_[i]), sizeof words);
    const std::string& label = error_labels_[i];
    Status found;
    switch (static_cast<DeviceError>(words[0])) {
      case DeviceError::kNone:
        continue;
      case DeviceError::kIndexOutside:
        found = invalid(label, ": index ", words[1], " is outside a dimension of size ", words[2]);
        break;
      case DeviceError::kDivisorZero:
        found = invalid(label, ": an element of the divisor is 0");
        break;
      case DeviceError::kBeyond32Bits:
        return refused(Rule::kWide, str_cat(backend_, " has 32-bit integers, and a result of ", label, " needs more"));
      case DeviceError::kLengthOutside:
        found = invalid(label, ": a sequence's length is ", words[1], ", must be in [0, ", words[2], "]");
        break;
      case DeviceError::kBoxOutside:
        return refused(Rule::kAttribute, str_cat(label, ": ", backend_, " samples finite boxes of at most 64 samples"));
      case DeviceError::kUndecided:
        return refused(Rule::kAttribute, str_cat(label, ": a number is too near to where another byte is stored"));
    }
    if (first.ok()) first = std::move(found);
  }
  return first;
}

Status GpuExecutable::submit(Instance& instance, int now, bool copies_enter, const RunContext& context) const {
  Recorded& recorded = instance.recorded[now];
  if (context.timings && recorded.profiled.empty()) {
    std::vector<std::unique_ptr<CommandList>> all;  // a recording that fails half-way leaves nothing
    PINNACE_TRY(record(instance, now, true, all));
    recorded.profiled = std::move(all);
  }
  auto& lists = context.timings ? recorded.profiled : recorded.lists;
  Device& device = context_->device();
  CommandList* const before = copies_enter ? instance.copies_enter[now].get() : nullptr;
  // One list is always under way while the next is handed over; a cancelled run waits for what it has submitted.
  Status status;
  if (before) PINNACE_TRY(device.submit(*before));
  for (size_t i = 0; i < lists.size() && status.ok(); ++i) {
    if (i > 1) status = device.wait(*lists[i - 2]);
    if (status.ok() && context.cancelled())
      status = stop_status(str_cat("part ", i + 1, " of ", lists.size(), " on ", backend_));
    if (status.ok()) status = device.submit(*lists[i]);
  }
  const auto wait = [&](CommandList& list) {
    const Status waited = device.wait(list);
    if (status.ok()) status = waited;
  };
  if (before) wait(*before);
  for (auto& list : lists) wait(*list);
  return status;
}

Status GpuExecutable::profile(const Recorded& recorded, const RunContext& context,
                              std::chrono::steady_clock::time_point start) const {
  std::vector<uint64_t> ns;
  uint64_t origin = 0;
  for (size_t i = 0; i < recorded.profiled.size(); ++i) {
    PINNACE_TRY(recorded.profiled[i]->timestamps(&ns));
    if (ns.empty()) break;
    if (i == 0) origin = ns[0];
    for (size_t k = 0; k + 1 < ns.size(); ++k) {
      const size_t s = slices_[i] + k;
      context.timings->add(*nodes_[steps_[s].node], backend_, ready_[s]->code().name,
                           start + std::chrono::nanoseconds(ns[k] - origin),
                           start + std::chrono::nanoseconds(ns[k + 1] - origin));
    }
  }
  if (!nodes_.empty()) {
    context.timings->add(*nodes_[0], backend_, "the whole run", start, std::chrono::steady_clock::now());
  }
  return {};
}

}  // namespace pinnace::gpu
