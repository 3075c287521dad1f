// States of one session that stay on the device: each twice, of which a run reads one and writes the other.
#pragma once

#include "backends/gpu/executable.h"

namespace pinnace::gpu {

/// Values are read and written in host memory alone (Instance::states_on_host), so they are there whatever becomes of
/// the device, but for a forked child: the driver's memory need not come along.
class GpuExecutable::States final : public KeptStates {
 public:
  /// `executable` outlives it.
  States(const GpuExecutable& executable, std::unique_ptr<Instance> instance)
      : executable_(executable), instance_(std::move(instance)) {}

  bool keeps(size_t i) const override { return i < executable_.states_.size() && executable_.states_[i]; }
  /// kDeviceLost too for a number that 32 bits do not hold; the device is well.
  Status write(size_t i, const std::byte* from) override;
  Status read(size_t i, std::byte* to) override;
  void commit() override { now_ = 1 - now_; }

  Instance& instance() { return *instance_; }
  /// Which of the two a run reads.
  int now() const { return now_; }
  /// Whether the host wrote since set_entered().
  bool written() const { return written_; }
  void set_entered() { written_ = false; }

 private:
  const GpuExecutable& executable_;
  std::unique_ptr<Instance> instance_;
  int now_ = 0;
  bool written_ = false;
};

}  // namespace pinnace::gpu
