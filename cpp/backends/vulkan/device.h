// The Vulkan driver of the device interface.
#pragma once

#include "backends/gpu/device.h"
#include "backends/vulkan/device_files.h"

namespace pinnace::vulkan {

/// Empty if device `index` is there, else why not.
std::string unavailable(uint32_t index);
/// Of a device that is there.
gpu::DeviceCaps look(uint32_t index);
Result<std::unique_ptr<gpu::Device>> open_device(uint32_t index, const gpu::DeviceOptions& options);

/// For messages about the driver: "vulkan".
#if defined(__aarch64__)
inline constexpr gpu::Driver kDriver{"vulkan", false, &unavailable, &open_device, &look};
#else
inline constexpr gpu::Driver kDriver{"vulkan", false, &unavailable, &open_device, &look, &device_signs};
#endif

}  // namespace pinnace::vulkan
