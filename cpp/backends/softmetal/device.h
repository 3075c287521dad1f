// The driver that runs Metal's kernels on this processor, from libpinnace_softmetal.so: for tests of kernels and of all
// that stands above the device interface, where there is no Apple device. It does in other orders what a device may do
// in any.
#pragma once

#include <string>
#include <string_view>

#include "backends/gpu/device.h"
#include "backends/softmetal/library.h"

namespace pinnace::softmetal {

/// What Metal leaves open: in which order things run, and how wide a simdgroup is.
struct Execution {
  SoftmetalOrder order = kSoftmetalForward;  ///< of invocations, of threadgroups, and of commands between two barriers
  uint32_t seed = 1;                         ///< of kSoftmetalShuffled
  uint32_t simd_width = 32;                  ///< 8, 16, 32, 64
  bool races = true;  ///< accesses of threadgroup memory that no barrier orders are faults; off, kernels run faster
};

/// "order=shuffled seed=7 width=8 races=0", any of them; empty: the defaults. kInvalidArgument names what is not known.
Result<Execution> parse_execution(std::string_view text);

/// A device. `library`: null takes libpinnace_softmetal.so beside this library; tests bring kernels of their own.
///
/// A kernel that does what Metal does not define (an access outside of a binding or an array, a race, a barrier that
/// not all reach, more than 32 KiB of threadgroup memory) fails the list that ran it: wait() gives kInvalidArgument
/// with the kernel, the line of its text and the reason. finish() gives it for two commands without a barrier between
/// that touch the same bytes, one of them writing. Both count as validation_messages(). The device goes on. New buffers
/// are filled with 0xff, a NaN.
Result<std::unique_ptr<gpu::Device>> open(const gpu::DeviceOptions& options, const Execution& execution,
                                          const SoftmetalLibrary* library = nullptr);

/// What libpinnace_softmetal.so exports, opened once; kUnsupported says why it cannot be had.
Result<const SoftmetalLibrary*> library();

/// Empty if it can run here, else why not. There is one device, number 0.
std::string unavailable(uint32_t index);
/// Execution is read from the environment variable PINNACE_SOFTMETAL.
Result<std::unique_ptr<gpu::Device>> open_device(uint32_t index, const gpu::DeviceOptions& options);

inline constexpr gpu::Driver kDriver{"softmetal", true, &unavailable, &open_device};

}  // namespace pinnace::softmetal
