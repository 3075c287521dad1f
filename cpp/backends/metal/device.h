// The driver of Metal, in Objective-C++: built where there is an Apple SDK, and on Linux for tests against a pretend
// device.
#pragma once

#include "backends/gpu/device.h"

namespace pinnace::metal {

/// Empty if there is a Metal device, else why not. There is one, number 0: the system's default.
std::string unavailable(uint32_t index);
/// Kernels are compiled by the system from KernelCode::msl. Lists are encoded anew at each submit; commands between two
/// barriers run concurrently.
Result<std::unique_ptr<gpu::Device>> open_device(uint32_t index, const gpu::DeviceOptions& options);

inline constexpr gpu::Driver kDriver{"metal", false, &unavailable, &open_device};

}  // namespace pinnace::metal
