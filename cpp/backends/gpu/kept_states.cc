// The way of states from the host's bytes to those that the device reads, and back.
#include "backends/gpu/kept_states.h"

#include "backends/gpu/transfer.h"

namespace pinnace::gpu {

Status GpuExecutable::States::write(size_t i, const std::byte* from) {
  if (!executable_.context_->opened_here()) return device_lost(executable_.backend_);
  const State& state = *executable_.states_[i];
  std::byte* const to = executable_.host(instance_->states_on_host(now_), state.place);
  written_ = true;
  if (const auto wide = to_device({&state.type, const_cast<std::byte*>(from)}, to)) {
    return executable_.refused_wide("a state", *wide);
  }
  return {};
}

Status GpuExecutable::States::read(size_t i, std::byte* to) {
  if (!executable_.context_->opened_here()) {
    return fail_with(Code::kDeviceLost, executable_.backend_, " has it in a process that this one was forked from");
  }
  const State& state = *executable_.states_[i];
  from_device(executable_.host(instance_->states_on_host(now_), state.place), {&state.type, to});
  return {};
}

}  // namespace pinnace::gpu
