// An opened device with the kernels that were made for it; shared by all executables of a process.
#pragma once

#include <unistd.h>

#include <cassert>
#include <cstring>
#include <map>
#include <tuple>

#include "backends/gpu/device.h"
#include "backends/gpu/push_constants.h"
#include "base/threads/thread_pool.h"
#include "base/threads/work_mutex.h"

namespace pinnace::gpu {

/// The lines of kernels.inc.
enum class KernelId : uint8_t {
#define KERNEL(name, file, storage, defines, params, split) name,
#include "backends/gpu/kernels.inc"
#undef KERNEL
};
/// The variant of a kernel for tensors of 16 or 32 bits.
const KernelCode& kernel_code(KernelId id, bool f16);

/// A kernel and its specialisation constants.
struct KernelKey {
  KernelId id;
  bool f16;
  std::vector<int32_t> spec{};  ///< by number
  /// As the struct of the kernel's (params.h of its family).
  template <SpecConstants C>
  C constants() const {
    assert(sizeof(C) == spec.size() * sizeof(int32_t));
    C values;
    std::memcpy(static_cast<void*>(&values), spec.data(), sizeof(C));
    return values;
  }
  int32_t& operator[](SpecConstant constant) { return spec[constant.number]; }
  int32_t operator[](SpecConstant constant) const { return spec[constant.number]; }
  auto operator<=>(const KernelKey&) const = default;
};

struct SelfChecks;

/// Options that the environment states, for tests: PINNACE_GPU_OPTIONS, a list such as "validation,staging,no_f16,
/// offset_alignment=256". kInvalidArgument: a name or number that is none; the sentence lists the names.
Result<DeviceOptions> options_from_environment();

/// What calls give on a device that another one lost.
inline Status device_lost(std::string_view backend) {
  return fail_with(Code::kDeviceLost, "the device of ", backend, " was lost");
}

/// Thread-safe.
class Context {
 public:
  /// The context of this device, opened if nobody holds it or if it was lost.
  static Result<std::shared_ptr<Context>> open(const Driver& driver, uint32_t index);
  ~Context();

  Device& device() { return *device_; }
  const DeviceCaps& caps() const { return device_->caps(); }
  /// All of `keys`, those that are missing made by several threads. Fails also as WorkMutex::lock() does.
  Result<std::vector<const Kernel*>> kernels(std::span<const KernelKey> keys);
  /// The device fails every call from now on, whatever it says; the next open() makes a new one.
  void lose() { lost_.store(true); }
  /// In a forked child those that the parent opened are lost: the threads of their drivers stayed behind.
  bool lost() const { return lost_.load() || !opened_here(); }
  bool opened_here() const { return process_ == ::getpid(); }
  /// Kernels made so far, for tests.
  size_t kernel_count();

  /// Shared by all contexts of this device in the process.
  SelfChecks& self_checks() { return *checks_; }
  bool checks_itself() const { return !options_.no_self_check; }
  /// Whether a test wants this kernel's self-check, "conv_nc4hw4_f16", to fail.
  bool spoils(std::string_view kernel) const;
  /// Which barrier of a list a test wants to be left out, from 1; 0: none.
  uint32_t dropped_barrier() const { return options_.drop_barrier; }
  /// Writes pipelines and results of self-checks where the environment says.
  void store_cache();

 private:
  Context() = default;
  std::string cache_path() const;

  std::unique_ptr<Device> device_;
  DeviceOptions options_;
  SelfChecks* checks_ = nullptr;  // never destroyed
  WorkMutex mutex_;
  std::map<KernelKey, std::unique_ptr<Kernel>> kernels_;
  std::atomic<bool> lost_{false};
  const pid_t process_ = ::getpid();
};

}  // namespace pinnace::gpu
