// The back end `vulkan`: the Vulkan driver below what all GPU back ends share.
#include "backends/gpu/backend.h"
#include "backends/vulkan/device.h"

namespace pinnace {

const Backend& vulkan_backend() {
  static const Backend* const backend = gpu::make_backend(vulkan::kDriver);  // never destroyed
  return *backend;
}

}  // namespace pinnace
