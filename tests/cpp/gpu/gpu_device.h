// The Vulkan driver as tests open it: under the API's own checks, or not at all on a machine without a device.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/gpu/context.h"
#include "backends/vulkan/device.h"

namespace pinnace::testing {

/// Options of the environment for the life of this object; sessions and contexts that are opened meanwhile have them.
class GpuOptions {
 public:
  explicit GpuOptions(const std::string& options) { setenv("PINNACE_GPU_OPTIONS", options.c_str(), 1); }
  ~GpuOptions() { unsetenv("PINNACE_GPU_OPTIONS"); }
  GpuOptions(const GpuOptions&) = delete;
  GpuOptions& operator=(const GpuOptions&) = delete;
};

/// Empty, or why tests of the device are skipped here.
inline std::string no_gpu() {
  if (std::string reason = vulkan::unavailable(0); !reason.empty()) return reason;
  gpu::DeviceOptions options;
  options.validation = true;
  const auto device = vulkan::open_device(0, options);
  return device ? std::string() : device.status().message();
}

#define PINNACE_NEEDS_GPU() \
  if (const std::string reason = no_gpu(); !reason.empty()) GTEST_SKIP() << reason

}  // namespace pinnace::testing
