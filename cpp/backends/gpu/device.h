// The device interface: all that a driver (vulkan, metal, softmetal) must give. Drivers know no operator and no graph;
// layout, lowering, planning, recording and fallback stand above this interface, once for all of them.
//
// Threads: a Device and its Kernels may be used by many threads at once. A DeviceBuffer's bytes and a CommandList
// belong to one thread at a time. Everything made by a Device is destroyed before it, and not while work on it is under
// way.
//
// Failures: kOutOfMemory (nothing was changed), kDeviceLost (the device is gone: every later call says so too; destroy
// all and open anew), kUnsupported (the device lacks what was asked for; the sentence names it).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/gpu/kernel_code.h"
#include "base/status.h"

namespace pinnace::gpu {

constexpr uint64_t kBufferStep = 256;
/// max_buffer_bytes of a device whose buffers have so many.
constexpr uint64_t buffer_limit(uint64_t bytes) {
  return bytes < kBufferStep ? kBufferStep : bytes / kBufferStep * kBufferStep;
}

/// What a device has. Limits are those of one kernel.
struct DeviceCaps {
  std::string name;    ///< "llvmpipe (LLVM 15.0.6, 256 bits)"
  std::string driver;  ///< "Vulkan 1.3.230, driver 0.0.1"
  /// Equal where stored pipelines and results of self-checks may be taken over: device, driver and its version.
  std::string identity;
  bool software = false;            ///< a CPU stands in for the device
  bool unified_memory = false;      ///< every buffer has a host address
  bool f16_storage = false;         ///< buffers of 16-bit floats
  bool simdgroup_matrices = false;  ///< Metal's matrices of simdgroups, which have 32 lanes
  uint32_t subgroup_size = 0;       ///< 0: unknown, or it varies
  uint32_t shared_bytes = 16384;
  uint32_t max_invocations = 128;  ///< of a workgroup
  std::array<uint32_t, 3> max_groups = {65535, 65535, 65535};
  uint64_t max_binding_bytes = uint64_t{128} << 20;
  uint64_t max_buffer_bytes = uint64_t{1} << 30;  ///< a multiple of kBufferStep: buffer_limit()
  uint32_t offset_alignment = 256;                ///< of Binding::offset; a power of two, at most 256
  double timestamp_ns = 0;                        ///< of one tick; 0: no time stamps
  /// Loop turns of one invocation, those of all its loops together. After them every loop ends as if it were done.
  uint64_t max_turns = UINT64_MAX;
};

/// What a test asks of a driver, so that it behaves like a lesser device. Limits only ever fall.
struct DeviceOptions {
  bool validation = false;           ///< the API's own checks, where there are any; see Device::validation_messages
  bool force_staging = false;        ///< device memory has no host address
  bool no_f16 = false;               ///< no 16-bit storage
  bool no_matrices = false;          ///< no simdgroup_matrices
  bool unknown_subgroup = false;     ///< subgroup_size is 0
  uint32_t offset_alignment = 1;     ///< at least this
  uint32_t shared_bytes = 1 << 20;   ///< at most this
  uint32_t max_invocations = 1024;   ///< at most this
  uint32_t max_groups = UINT32_MAX;  ///< on each axis, at most this
  uint64_t max_binding_bytes = UINT64_MAX, max_buffer_bytes = UINT64_MAX, max_turns = UINT64_MAX;  ///< at most these
  /// Faults: the n-th buffer, the n-th submit (from 1) fails, by kOutOfMemory and kDeviceLost. 0: none.
  uint32_t fail_buffer = 0, fail_submit = 0;
  /// Not the driver's. Of the devices opened with these options in a process: the n-th cannot be opened (0: none); only
  /// the first so many have faults (0: all).
  uint32_t fail_open = 0, faulty_devices = 0;
  /// Nor these: the n-th barrier of every list is left out (0: none); kernels whose self-check is to find wrong
  /// answers, "conv_nc4hw4" or "conv_nc4hw4_f16"; and no self-checks at all.
  std::vector<std::string> fail_self_test;
  uint32_t drop_barrier = 0;
  bool no_self_check = false;
  bool measure_software = false;  ///< the target "auto" also measures devices that are this processor
  /// Bytes of an earlier Device::cache_blob; what is damaged or of another device is ignored.
  std::vector<std::byte> cache;
};

enum class BufferUse : uint8_t {
  kDevice,    ///< read and written by kernels and copies; has a host address if caps().unified_memory
  kUpload,    ///< written by the host, copied from or read by kernels; always has a host address
  kDownload,  ///< as kDevice, and read by the host, which may write it too; always has a host address
};

/// Memory of the device. Contents are undefined at first. Host and device see each other's writes at submit and wait.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
  size_t bytes() const { return bytes_; }
  /// Where the host reads and writes it, while no submitted list uses it; null if it cannot. Aligned to 64.
  std::byte* host() const { return host_; }

 protected:
  DeviceBuffer(size_t bytes, std::byte* host) : bytes_(bytes), host_(host) {}
  size_t bytes_;
  std::byte* host_;
};

/// A kernel made ready for the device, with its specialisation constants.
class Kernel {
 public:
  virtual ~Kernel() = default;
  const KernelCode& code() const { return code_; }

 protected:
  explicit Kernel(const KernelCode& code) : code_(code) {}
  const KernelCode& code_;
};

/// Bytes [offset, offset + bytes) of a buffer as a kernel sees them. offset is a multiple of caps().offset_alignment
/// and of 16; bytes is a multiple of 4, above 0 and at most caps().max_binding_bytes; the range lies in the buffer.
struct Binding {
  const DeviceBuffer* buffer = nullptr;
  size_t offset = 0;
  size_t bytes = 0;
};

/// Work that is recorded once and submitted any number of times, once at a time. Buffers and kernels are borrowed until
/// it is destroyed. Order: commands between two barriers may run in any order and overlap; what stands before a barrier
/// is finished and seen by all after it, also by lists that are submitted later. A list begins and ends with a barrier.
/// What goes wrong while recording is reported by finish().
class CommandList {
 public:
  virtual ~CommandList() = default;
  /// One binding for each of the kernel's; `push` has its push_bytes bytes; groups are at least 1 and within
  /// max_groups.
  virtual void dispatch(const Kernel& kernel, std::span<const Binding> bindings, std::span<const std::byte> push,
                        std::array<uint32_t, 3> groups) = 0;
  virtual void barrier() = 0;
  /// Offsets and bytes are multiples of 4; the ranges do not overlap.
  virtual void copy(const DeviceBuffer& from, size_t from_offset, const DeviceBuffer& to, size_t to_offset,
                    size_t bytes) = 0;
  /// Takes the time when everything before it is done. Slots count from 0, each is used once. No effect without
  /// time stamps.
  virtual void timestamp(uint32_t slot) = 0;
  /// Nothing is recorded after it.
  virtual Status finish() = 0;
  /// Of the last finished run, one number of nanoseconds per slot, from any beginning; empty without time stamps.
  virtual Status timestamps(std::vector<uint64_t>* ns) const = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceCaps& caps() const = 0;
  /// bytes above 0, at most caps().max_buffer_bytes.
  virtual Result<std::unique_ptr<DeviceBuffer>> buffer(size_t bytes, BufferUse use) = 0;
  /// spec: as many as code.spec_constants. Takes long the first time (a compiler runs); see cache_blob.
  virtual Result<std::unique_ptr<Kernel>> kernel(const KernelCode& code, std::span<const int32_t> spec) = 0;
  /// An empty list; `timestamps` is the number of slots that it may use.
  virtual Result<std::unique_ptr<CommandList>> command_list(uint32_t timestamps) = 0;
  /// Starts a finished list after everything that was submitted before; does not wait.
  virtual Status submit(CommandList& list) = 0;
  /// Returns when the list's last submit is done; at once if there was none.
  virtual Status wait(CommandList& list) = 0;
  /// What makes kernels ready faster in another process, for DeviceOptions::cache; may be empty.
  virtual std::vector<std::byte> cache_blob() const = 0;
  /// Messages of the API's own checks so far; 0 where they are off.
  virtual uint64_t validation_messages() const { return 0; }
  /// The texts of the first of them.
  virtual std::string validation_texts() const { return {}; }
};

/// How a driver is found: one constant object per driver.
struct Driver {
  const char* name;  ///< the target: "vulkan"
  bool emulated;     ///< never anything but this processor: the target "auto" does not look at it
  /// Empty if it can run here, else why not, one phrase: "no Vulkan loader (libvulkan.so.1)". `index`: which device.
  std::string (*unavailable)(uint32_t index);
  /// kUnsupported with that phrase if it cannot run here; kDeviceLost if the device answers no more.
  Result<std::unique_ptr<Device>> (*open)(uint32_t index, const DeviceOptions& options);
  /// Name, driver, identity and `software` of a device that is not unavailable, where that is cheaper than to open it;
  /// null: it is not.
  DeviceCaps (*look)(uint32_t index) = nullptr;
  /// Signs of hardware that are found without opening a library; empty: there are none, and only this processor can
  /// stand in for a device. null: nothing is known before the driver is asked.
  std::string (*signs)() = nullptr;
};

}  // namespace pinnace::gpu
